import math

import pytest

from vefl_sim.learning.metric import common_metric, metric_of, metric_of_summary


def test_with_classes_it_is_the_accuracy_whatever_the_loss() -> None:
    for loss in ("cross-entropy", "mine:focal"):
        metric = metric_of(loss, has_accuracy=True)
        assert (metric.name, metric.value(0.5, 2.0), metric.text(0.5), metric.short_text(0.5)) == (
            "accuracy", 0.5, "0.5000", "50.0%",
        )  # fmt: skip
        assert metric.loss_note == ""


def test_before_the_first_evaluation_cross_entropy_has_an_accuracy_and_mse_none() -> None:
    assert metric_of("cross-entropy", has_accuracy=False).name == "accuracy"
    assert metric_of("mse", has_accuracy=False).name == "rmse"
    assert metric_of("cross-entropy", has_accuracy=False).value(None, None) is None


def test_the_squared_error_is_shown_as_its_root() -> None:
    metric = metric_of("mse", has_accuracy=False)
    assert (metric.name, metric.column, metric.value(None, 4.0), metric.loss_note) == ("rmse", "loss", 2.0, " (mse)")
    summary = {"first_loss": 9.0, "best_loss": 1.0, "last_loss": 4.0, "last_accuracy": None}
    assert [metric.of_summary(which, summary) for which in ("first", "best", "last")] == [3.0, 1.0, 2.0]
    assert metric_of_summary("mse", summary) == metric


def test_a_user_defined_loss_has_its_own_name() -> None:
    metric = metric_of("mine.losses:pinball", has_accuracy=False)
    assert (metric.name, metric.value(None, 4.0), metric.loss_note) == ("pinball", 4.0, " (pinball)")


@pytest.mark.parametrize("loss", ["mine:cost", "mine:accuracy", "mine:", "mine:\n"])
def test_a_name_that_is_taken_or_empty_is_replaced(loss: str) -> None:
    assert metric_of(loss, has_accuracy=False).name == "loss"


@pytest.mark.parametrize(
    ("value", "text"), [(0.72, "0.7200"), (12.3456, "12.35"), (1.5e-7, "1.500e-07"), (0.0, "0.000")]
)
def test_errors_of_any_size_have_four_digits(value: float, text: str) -> None:
    assert metric_of("mse", has_accuracy=False).text(value) == text


def test_what_is_not_a_number_is_no_value() -> None:
    metric = metric_of("mse", has_accuracy=False)
    assert metric.of_summary("last", {"last_loss": None}) is None
    assert metric.of_summary("last", {"last_loss": "much"}) is None
    assert math.isnan(metric.of_column(math.nan))
    assert metric.of_column(-1.0) == -1.0  # of a stranger's table


def test_different_metrics_have_nothing_in_common() -> None:
    accuracy, rmse = metric_of("cross-entropy", has_accuracy=True), metric_of("mse", has_accuracy=False)
    assert common_metric([rmse, rmse]) == rmse
    assert common_metric([accuracy, rmse]) is None
    assert common_metric([]) is None
