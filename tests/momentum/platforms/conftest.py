from tests.momentum.platforms.fixtures import linkedin, sandbox, sandbox_process

__all__ = ["linkedin", "sandbox", "sandbox_process"]
