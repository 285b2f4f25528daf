"""What the terminal says about pods that Moorage is not asked about."""

from cli.up.asked import Schedulers

SCHEDULERS = Schedulers(ours=("batch", "moorage"))


def test_pods_of_the_policys_profiles_are_moorages() -> None:
    assert SCHEDULERS.serve("moorage")
    assert SCHEDULERS.problem("moorage") == ""
    assert list(SCHEDULERS.summary(["moorage", "batch"])) == []


def test_pods_that_name_no_scheduler_are_the_clusters_own() -> None:
    assert SCHEDULERS.serve("default-scheduler")
    assert SCHEDULERS.problem("default-scheduler") == (
        "schedulerName is default-scheduler: Moorage was not asked; set spec.schedulerName: batch"
    )


def test_pods_of_a_scheduler_that_does_not_run_wait_for_ever() -> None:
    assert not SCHEDULERS.serve("moorge")
    assert SCHEDULERS.problem("moorge") == (
        "no scheduler here serves schedulerName moorge; set spec.schedulerName: batch"
    )


def test_each_name_is_counted_in_a_line() -> None:
    names = ["default-scheduler", "moorage", "volcano", "default-scheduler"]
    cure = "set spec.schedulerName: batch"
    assert list(SCHEDULERS.summary(names)) == [
        f"2 pods have schedulerName default-scheduler: Moorage was not asked; {cure}",
        f"1 pod has schedulerName volcano: no scheduler here serves it; {cure}",
    ]


def test_a_policy_may_serve_the_default_name_itself() -> None:
    schedulers = Schedulers(ours=("default-scheduler",))
    assert schedulers.problem("default-scheduler") == ""
