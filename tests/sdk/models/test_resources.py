import pytest

from moorage.models import Container, Pod, PodSpec, Resources

MI = 1024 * 1024
DEFAULT_MEMORY = 200 * MI


def container(restart_policy: str = "", **requests: str) -> Container:
    return Container(resources=Resources(requests=dict(requests)), restart_policy=restart_policy)


def sidecar(**requests: str) -> Container:
    return container("Always", **requests)


def pod(
    *containers: Container,
    init: tuple[Container, ...] = (),
    own: dict[str, str] | None = None,
    overhead: dict[str, str] | None = None,
) -> Pod:
    return Pod(
        spec=PodSpec(
            containers=containers,
            init_containers=init,
            resources=Resources(requests={**(own or {})}),
            overhead={**(overhead or {})},
        )
    )


def test_containers_run_together_so_their_requests_add_up() -> None:
    both = pod(container(cpu="500m", memory="1Mi"), container(cpu="1"))
    assert both.requests == {"cpu": 1500, "memory": MI}


def test_extended_resources_are_counted_like_any_other() -> None:
    gpus = Container(resources=Resources(requests={"nvidia.com/gpu": "2"}))
    assert pod(gpus, gpus).requests == {"nvidia.com/gpu": 4}


def test_init_containers_run_one_after_the_other_so_the_largest_counts_per_resource() -> None:
    spec = pod(
        container(cpu="1", memory="10Mi"),
        init=(container(cpu="3"), container(cpu="2", memory="20Mi")),
    )
    assert spec.requests == {"cpu": 3000, "memory": 20 * MI}


def test_a_sidecar_adds_to_the_containers_and_to_the_init_containers_after_it() -> None:
    before, after = container(cpu="5"), container(cpu="4")
    assert pod(container(cpu="1"), init=(before, sidecar(cpu="2"))).requests == {"cpu": 5000}
    assert pod(container(cpu="1"), init=(sidecar(cpu="2"), after)).requests == {"cpu": 6000}
    assert pod(container(cpu="3"), init=(sidecar(cpu="2"),)).requests == {"cpu": 5000}


def test_sidecars_start_in_order_on_top_of_each_other() -> None:
    init = (sidecar(cpu="1"), container(cpu="2"), sidecar(cpu="4"), container(cpu="3"))
    assert pod(container(cpu="1"), init=init).requests == {"cpu": 8000}


def test_what_the_pod_requests_itself_takes_precedence_over_its_containers() -> None:
    own = pod(container(cpu="4", memory="1Mi"), own={"cpu": "1"})
    assert own.requests == {"cpu": 1000, "memory": MI}


def test_the_pod_itself_cannot_request_extended_resources() -> None:
    assert pod(own={"nvidia.com/gpu": "1", "hugepages-2Mi": "2Mi"}).requests == {
        "hugepages-2Mi": 2 * MI
    }


def test_overhead_comes_on_top_of_everything() -> None:
    spec = pod(container(cpu="4"), own={"cpu": "1"}, overhead={"cpu": "250m", "memory": "1Mi"})
    assert spec.requests == {"cpu": 1250, "memory": MI}


def test_limits_are_not_read_because_the_api_server_has_copied_them() -> None:
    limited = Container(resources=Resources(limits={"cpu": "1"}))
    assert pod(limited).requests == {}


def test_for_scoring_every_container_that_requests_nothing_counts_a_little() -> None:
    assert pod(container(), container()).nonzero_requests == {
        "cpu": 200,
        "memory": 2 * DEFAULT_MEMORY,
    }
    assert pod(container(cpu="1"), container(memory="1Mi")).nonzero_requests == {
        "cpu": 1100,
        "memory": DEFAULT_MEMORY + MI,
    }


def test_for_scoring_an_explicit_zero_stays_zero() -> None:
    assert pod(container(cpu="0", memory="0")).nonzero_requests == {"cpu": 0, "memory": 0}


def test_for_scoring_sidecars_and_init_containers_have_defaults_too() -> None:
    assert pod(container(), init=(sidecar(), container())).nonzero_requests == {
        "cpu": 200,
        "memory": 2 * DEFAULT_MEMORY,
    }


def test_for_scoring_a_pod_with_own_requests_gets_defaults_only_for_what_nobody_mentions() -> None:
    silent = pod(container(memory="1Mi"), container(), own={"memory": "5Mi"})
    assert silent.nonzero_requests == {"cpu": 200, "memory": 5 * MI}
    one_mentions = pod(container(cpu="1"), container(), own={"memory": "5Mi"})
    assert one_mentions.nonzero_requests == {"cpu": 1000, "memory": 5 * MI}
    mentions_zero = pod(container(), init=(container(cpu="0"),), own={"memory": "5Mi"})
    assert mentions_zero.nonzero_requests == {"cpu": 0, "memory": 5 * MI}


def test_for_scoring_only_cpu_and_memory_count_even_without_containers() -> None:
    gpus = Container(resources=Resources(requests={"nvidia.com/gpu": "2"}))
    assert set(pod(gpus).nonzero_requests) == {"cpu", "memory"}
    assert pod().nonzero_requests == {"cpu": 0, "memory": 0}


def test_a_sum_that_does_not_fit_64_bits_becomes_the_largest_that_does() -> None:
    huge = container(memory="8E")
    assert pod(huge, huge).requests == {"memory": 2**63 - 1}


def test_a_request_that_is_no_quantity_is_an_error_that_quotes_it() -> None:
    with pytest.raises(ValueError, match="'lots'"):
        _ = pod(container(cpu="lots")).requests
