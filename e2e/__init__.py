"""The main job judged from outside: demo scenes and the checker that watches over them.

Reads only the API and imports nothing of the product, so that it can't share a mistake with it.
"""
