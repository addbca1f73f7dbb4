"""`allaboard gangs`, `explain` and `top`: what a running extender knows, for people and for scripts.

extender's /debug pages ──source.py──► JSON ──tables.py──► tables, or -o json|yaml as it came
"""
