"""The files for `accelerate launch` say what accelerate understands, and what their names say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "recipes" / "accelerate"
FILES = sorted(FOLDER.glob("*.yaml"))

pytest.importorskip("accelerate")


def launched(file: Path, *more: str) -> Any:
    """The arguments that `accelerate launch` works with, after its own checks."""
    from accelerate.commands import launch

    parser = launch.launch_command_parser()
    words = ["--config_file", str(file), *more, "-m", "vocabshift", "cpt", "x.toml"]
    arguments = parser.parse_args(words)
    return launch._validate_launch_command(arguments)[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_accelerate_reads_every_key(file: Path) -> None:
    """Its parser refuses keys that it does not know."""
    from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file

    config = load_config_from_file(str(file))
    assert isinstance(config, ClusterConfig)
    n_machines, n_processes, kind, precision = {
        "cpu-2": (1, 2, "MULTI_GPU", "no"),
        "h100-1": (1, 1, "NO", "bf16"),
        "h100-8": (1, 8, "FSDP", "bf16"),
        "h100-2x8": (2, 16, "FSDP", "bf16"),
    }[file.stem]
    assert (config.num_machines, config.num_processes) == (n_machines, n_processes)
    assert (str(config.distributed_type.value), config.mixed_precision) == (kind, precision)
    assert config.use_cpu == (file.stem == "cpu-2")


@pytest.mark.parametrize("reshard", ["true", "false"])
@pytest.mark.parametrize("name", ["h100-8", "h100-2x8"])
def test_processes_divide_the_model_by_fsdp2(
    name: str, reshard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process finds in its environment makes the plugin of version 2; a flag comes first."""
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils.launch import prepare_multi_gpu_env

    flag = ["--fsdp_reshard_after_forward", "false"] if reshard == "false" else []
    arguments = launched(FOLDER / f"{name}.yaml", *flag)
    for key, value in prepare_multi_gpu_env(arguments).items():
        if key.startswith(("FSDP_", "ACCELERATE_")):
            monkeypatch.setenv(key, value)
    plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2
    assert plugin.reshard_after_forward is (reshard == "true")
    assert plugin.auto_wrap_policy.__name__ == "transformer_auto_wrap_policy"
    assert plugin.activation_checkpointing is False
    assert plugin.cpu_ram_efficient_loading is False


def test_two_processes_on_a_cpu_are_two() -> None:
    """accelerate starts them by itself; of its own kind MULTI_CPU it starts one, without MPI."""
    arguments = launched(FOLDER / "cpu-2.yaml")
    assert arguments.multi_gpu
    assert not (arguments.cpu or arguments.use_fsdp or arguments.mpirun_hostfile)
    assert arguments.num_processes == 2


def test_two_machines_know_each_other() -> None:
    """Rank and address can be given where the file is the same on both."""
    from accelerate.commands import launch

    parser = launch.launch_command_parser()
    file = str(FOLDER / "h100-2x8.yaml")
    words = ["--config_file", file, "--machine_rank", "1", "--main_process_ip", "10.9.8.7"]
    arguments = launch._validate_launch_command(parser.parse_args([*words, "x.py"]))[0]
    assert (arguments.machine_rank, arguments.main_process_ip) == (1, "10.9.8.7")
    assert (arguments.num_machines, arguments.num_processes) == (2, 16)
    assert arguments.main_process_port == 29500


def test_the_readme_names_every_file() -> None:
    """In its table and in a command."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(FILES) == 4
    for file in FILES:
        assert text.count(file.name) >= 2
