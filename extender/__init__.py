"""The scheduler side: watch cache, gang registry, guard, bind barrier, grant writer."""
