"""The six scenes, one file each.

A scene is an async function that plays on a Stage under the eyes of an Observer, tells what it does, and
raises AssertionError where what it shows is not so. It leaves its namespaces empty.
"""
