"""`allaboard simulate`: the planner on files, without a cluster."""
