import subprocess
import sys

from vefl_sim.learning.learner import Learner, LocalJob, NullLearner


def test_a_null_learner_has_parameters_but_no_model() -> None:
    learner: Learner = NullLearner(parameters=21_840)
    assert learner.parameters == 21_840
    assert learner.initial_model() is None
    assert learner.train([None, None], [LocalJob(1, 5), LocalJob(2, 5)]) == [None, None]
    assert learner.combine(None, [None], [None], [1.0]) is None
    assert learner.average([None], [1.0]) is None
    assert learner.evaluate(None) is None


def test_importing_the_learner_interface_does_not_import_jax() -> None:
    code = "import sys, vefl_sim.learning.learner; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
