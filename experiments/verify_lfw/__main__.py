"""The command of the study."""

from experiments.verify_lfw.study import run
from jaxface.runtime import launch

if __name__ == "__main__":
    launch.main(run)
