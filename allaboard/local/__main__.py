"""`python -m allaboard.local`: the same commands as `allaboard local`."""

from allaboard.local.cli import app

if __name__ == "__main__":
    app(prog_name="python -m allaboard.local")
