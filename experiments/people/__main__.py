"""The command of the study."""

from experiments.people.study import run
from jaxface.runtime import launch

if __name__ == "__main__":
    launch.main(run)
