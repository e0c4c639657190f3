"""What a stack contains: four components, and `Deployment`, the only place that knows their order.

Each component wraps one custom resource of the plugin and takes a frozen dataclass of arguments: plain types where
preview must know the value, `Input` only where another resource feeds it. `settings` is the only reader of stack
config; `deploy()` is a whole Pulumi program.
"""

from .deployment import Deployment, DeploymentArgs, deploy
from .endpoint import Endpoint, EndpointArgs
from .engine_container import EngineContainer, EngineContainerArgs
from .gpu_instance import GpuInstance, GpuInstanceArgs
from .weight_cache import WeightCache, WeightCacheArgs

__all__ = [
    "Deployment",
    "DeploymentArgs",
    "Endpoint",
    "EndpointArgs",
    "EngineContainer",
    "EngineContainerArgs",
    "GpuInstance",
    "GpuInstanceArgs",
    "WeightCache",
    "WeightCacheArgs",
    "deploy",
]
