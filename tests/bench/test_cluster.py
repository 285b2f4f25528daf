"""The clusters and kube-scheduler's configurations of the part `cluster`."""

import os
from collections.abc import Iterator

import msgspec

from bench.cluster import (
    CASES,
    GO,
    GO_BINDS,
    MOORAGE_BINDS,
    SERIES,
    WITHOUT,
    Case,
    ProcessorTime,
    processor_seconds,
    scheduler_config,
)
from bench.processes.objects import Object
from bench.processes.stacks import BATCH

URL = "http://127.0.0.1:1"


def entries() -> Iterator[tuple[Case, list[Object]]]:
    for case in CASES:
        yield case, scheduler_config(case, URL)["extenders"]


def test_each_case_has_the_extender_that_it_asks() -> None:
    for case, extenders in entries():
        assert [entry["urlPrefix"] for entry in extenders] == (
            [] if case.name == WITHOUT else [URL]
        )


def test_only_cases_with_bind_verb_bind() -> None:
    binding = {case.name for case, extenders in entries() if "bindVerb" in str(extenders)}
    assert binding == {GO_BINDS, MOORAGE_BINDS}


def test_what_is_compared_differs_in_who_answers_and_in_nothing_else() -> None:
    configs = {case.name: scheduler_config(case, URL) for case in CASES}
    for case in CASES:
        if case.asked == "moorage":
            assert configs[case.name] == configs[case.reference]
    assert {case.reference for case in CASES} == {GO, GO_BINDS}


def test_kube_scheduler_scores_its_default_sample() -> None:
    config = scheduler_config(CASES[1], URL)
    assert config["percentageOfNodesToScore"] == 0
    assert config["profiles"] == [{"schedulerName": BATCH}]


def test_nodes_are_as_large_as_their_kind_says() -> None:
    heavy, light = ([series.node(index) for index in range(100)] for series in SERIES)
    assert all(8000 < len(msgspec.json.encode(node)) < 9000 for node in heavy)
    assert all(400 < len(msgspec.json.encode(node)) < 600 for node in light)
    assert len({node["metadata"]["name"] for node in light}) == 100


def test_processor_time_is_counted_from_when_it_begins() -> None:
    mine = os.getpid()
    used, began = ProcessorTime({"this": mine}), processor_seconds(mine)
    while processor_seconds(mine) < began + 0.05:
        pass
    assert used.milliseconds_a_pod(10)["this"] > 4.9
    assert ProcessorTime({}).milliseconds_a_pod(10) == {}
