import math

import pytest

from vefl_sim.learning.metric import common_metric, metric_of, metric_of_summary

RMSE = metric_of("mse", has_accuracy=False)


@pytest.mark.parametrize("loss", ["cross-entropy", "mine:focal"])
def test_with_classes_it_is_the_accuracy_whatever_the_loss(loss: str) -> None:
    metric = metric_of(loss, has_accuracy=True)
    assert (metric.name, metric.value(0.5, 2.0), metric.loss_note) == ("accuracy", 0.5, "")
    assert (metric.text(0.5), metric.short_text(0.5)) == ("0.5000", "50.0%")


def test_before_the_first_evaluation_cross_entropy_has_an_accuracy() -> None:
    metric = metric_of("cross-entropy", has_accuracy=False)
    assert (metric.name, metric.value(None, None)) == ("accuracy", None)


def test_the_squared_error_is_shown_as_its_root() -> None:
    assert (RMSE.name, RMSE.column, RMSE.value(None, 4.0), RMSE.loss_note) == ("rmse", "loss", 2.0, " (mse)")
    summary = {"first_loss": 9.0, "best_loss": 1.0, "last_loss": 4.0, "last_accuracy": None}
    assert [RMSE.of_summary(which, summary) for which in ("first", "best", "last")] == [3.0, 1.0, 2.0]
    assert metric_of_summary("mse", summary) == RMSE


@pytest.mark.parametrize(
    ("loss", "name"),
    [("mine.losses:pinball", "pinball"), *((f"mine:{taken}", "loss") for taken in ("cost", "accuracy", "", "\n"))],
)
def test_a_user_defined_loss_has_its_own_name_unless_that_is_taken_or_empty(loss: str, name: str) -> None:
    metric = metric_of(loss, has_accuracy=False)
    assert (metric.name, metric.value(None, 4.0), metric.loss_note) == (name, 4.0, f" ({name})")


@pytest.mark.parametrize(("value", "text"), [(0.72, "0.7200"), (12.3456, "12.35"), (1.5e-7, "1.500e-07")])
def test_errors_of_any_size_have_four_digits(value: float, text: str) -> None:
    assert RMSE.text(value) == text


def test_what_is_not_a_number_is_no_value() -> None:
    assert RMSE.of_summary("last", {"last_loss": None}) is None
    assert RMSE.of_summary("last", {"last_loss": "much"}) is None
    assert math.isnan(RMSE.of_column(math.nan))
    assert RMSE.of_column(-1.0) == -1.0  # of a stranger's table


def test_different_metrics_have_nothing_in_common() -> None:
    assert common_metric([RMSE, RMSE]) == RMSE
    assert common_metric([metric_of("cross-entropy", has_accuracy=True), RMSE]) is None
    assert common_metric([]) is None
