from tests.momentum.platforms.fixtures import sandbox, sandbox_process
from tests.momentum.publishing.scene import scene

__all__ = ["sandbox", "sandbox_process", "scene"]
