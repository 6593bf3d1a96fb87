"""Models that others wrote, small, with random weights: of transformers, torchvision, timm and diffusers.

They need the extra `wild`. Nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

os.environ.setdefault("HF_HUB_OFFLINE", "1")

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class Subject:
    """A model in training mode, and arguments for it."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def double(self) -> Subject:
        """The same in float64."""
        kwargs = {name: _double(value) for name, value in self.kwargs.items()}
        return Subject(self.model.double(), tuple(map(_double, self.args)), kwargs)

    def loss(self, model: nn.Module) -> tuple[Any, Tensor]:
        """What a model returns for the arguments, and a loss of it."""
        returned = model(*self.args, **self.kwargs)
        return returned, _loss_of(returned)


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _loss_of(returned: Any) -> Tensor:
    if getattr(returned, "loss", None) is not None:
        loss: Tensor = returned.loss
        return loss
    for name in ("sample", "last_hidden_state", "logits"):
        returned = getattr(returned, name, returned)
    first: Tensor = returned[0] if isinstance(returned, tuple) else returned
    return first.square().mean()


def load(name: str) -> Any:
    """Import a library; torchvision's operators, whose library may need CUDA, are declared before any imports it."""
    _declare_operators_of_torchvision()
    return importlib.import_module(name)


def _declare_operators_of_torchvision() -> None:
    fragment = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):  # it is there
            fragment.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _fragments.append(fragment)


_fragments: list[torch.library.Library] = []
_SEED, _VOCABULARY = 3, 100


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(_SEED)


def _tokens(length: int = 16) -> Tensor:
    return torch.randint(0, _VOCABULARY, (2, length), generator=_generator())


def floats(*shape: int) -> Tensor:
    """Random numbers, the same each time."""
    return torch.randn(shape, generator=_generator())


def _text() -> dict[str, Tensor]:
    return {"input_ids": _tokens(), "labels": _tokens()}


def _image() -> dict[str, Tensor]:
    return {"pixel_values": floats(2, 3, 32, 32), "labels": torch.tensor([0, 1])}


def _language(**more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    return {"vocab_size": _VOCABULARY, "max_position_embeddings": 64, **sizes, **more}


def _vision(**more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    return {"image_size": 32, "patch_size": 8, **sizes, **more}


def _translation(**more: Any) -> dict[str, Any]:
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    heads = {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    widths = {f"{side}_ffn_dim": 64 for side in ("encoder", "decoder")}
    return {"vocab_size": _VOCABULARY, "d_model": 32, **layers, **heads, **widths, **more}


_GROUPED = {"num_key_value_heads": 2}
_SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_DISENTANGLED = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}
# name: (class, configuration, its values, inputs)
_TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any], Callable[[], dict[str, Any]]]] = {
    "bert": ("BertForMaskedLM", "BertConfig", _language(), _text),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", _language(pad_token_id=1), _text),
    "distilbert": (
        *("DistilBertForMaskedLM", "DistilBertConfig"),
        {"vocab_size": _VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
        _text,
    ),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", _language(embedding_size=32), _text),
    "deberta_v2": ("DebertaV2ForMaskedLM", "DebertaV2Config", _language(**_DISENTANGLED), _text),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", _language(embedding_size=16), _text),
    "modernbert": (
        *("ModernBertForMaskedLM", "ModernBertConfig", _language(cls_token_id=1, sep_token_id=2, **_SPECIAL)),
        _text,
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": _VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4},
        _text,
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _language(), _text),
    "llama": ("LlamaForCausalLM", "LlamaConfig", _language(**_GROUPED), _text),
    "mistral": ("MistralForCausalLM", "MistralConfig", _language(sliding_window=8, **_GROUPED), _text),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _language(**_GROUPED), _text),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", _language(head_dim=8, **_GROUPED), _text),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", _language(head_dim=8, **_GROUPED), _text),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", _language(**_GROUPED, **_SPECIAL), _text),
    "opt": ("OPTForCausalLM", "OPTConfig", _language(ffn_dim=64, word_embed_proj_dim=32), _text),
    "bloom": (
        *("BloomForCausalLM", "BloomConfig"),
        {"vocab_size": _VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        _text,
    ),
    "falcon": ("FalconForCausalLM", "FalconConfig", _language(), _text),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", _language(num_local_experts=4, **_GROUPED), _text),
    "mamba": ("MambaForCausalLM", "MambaConfig", _language(state_size=4), _text),
    "t5": (
        *("T5ForConditionalGeneration", "T5Config"),
        {
            "vocab_size": _VOCABULARY,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
        _text,
    ),
    "bart": ("BartForConditionalGeneration", "BartConfig", _translation(max_position_embeddings=64), _text),
    "vit": ("ViTForImageClassification", "ViTConfig", _vision(), _image),
    "swin": (
        *("SwinForImageClassification", "SwinConfig"),
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        _image,
    ),
    "convnext": (
        *("ConvNextForImageClassification", "ConvNextConfig"),
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
        _image,
    ),
    "clip": (
        *("CLIPModel", "CLIPConfig"),
        {"text_config": _language(eos_token_id=99), "vision_config": _vision(), "projection_dim": 16},
        lambda: {"input_ids": _tokens(), "pixel_values": floats(2, 3, 32, 32), "return_loss": True},
    ),
    "wav2vec2": (
        *("Wav2Vec2Model", "Wav2Vec2Config"),
        _language(
            conv_dim=[16, 16],
            conv_stride=[5, 2],
            conv_kernel=[10, 3],
            num_feat_extract_layers=2,
            num_conv_pos_embeddings=8,
            num_conv_pos_embedding_groups=2,
            mask_time_prob=0.0,
            layerdrop=0.0,
        ),
        lambda: {"input_values": floats(2, 800)},
    ),
    "whisper": (
        *("WhisperForConditionalGeneration", "WhisperConfig"),
        _translation(
            max_source_positions=32,
            max_target_positions=32,
            num_mel_bins=16,
            decoder_start_token_id=1,
            suppress_tokens=None,
            begin_suppress_tokens=None,
            **_SPECIAL,
        ),
        lambda: {"input_features": floats(2, 16, 64), "labels": _tokens()},
    ),
}
_TORCHVISION: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("resnet18", "resnet50", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5")},
    **{
        name: {} for name in ("convnext_tiny", "regnet_y_400mf", "densenet121", "squeezenet1_1", "swin_t", "mnasnet0_5")
    },
    "googlenet": {"aux_logits": False, "init_weights": False},
    "vgg11": {"init_weights": False},
}
_TIMM = {
    **dict.fromkeys(("resnet18", "convnext_atto", "mobilenetv3_small_050", "efficientnet_b0"), 64),
    **dict.fromkeys(("seresnext26d_32x4d",), 64),
    **dict.fromkeys(("mixer_s32_224", "vit_tiny_patch16_224", "resmlp_12_224"), 224),
}


def _of_transformers(name: str) -> Subject:
    transformers = load("transformers")
    cls, config, values, inputs = _TRANSFORMERS[name]
    made = getattr(transformers, config)(**values)
    if hasattr(made, "use_cache"):
        made.use_cache = False
    return Subject(getattr(transformers, cls)(made), kwargs=inputs())


def _of_torchvision(name: str) -> Subject:
    make = getattr(load("torchvision").models, name)
    return Subject(make(weights=None, num_classes=10, **_TORCHVISION[name]), (floats(2, 3, 64, 64),))


def _of_timm(name: str) -> Subject:
    size = _TIMM[name]
    load("torchvision")
    model = load("timm").create_model(name, pretrained=False, num_classes=10)
    return Subject(model, (floats(2, 3, size, size),))


def _unet() -> Subject:
    model = load("diffusers").UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        norm_num_groups=8,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )
    return Subject(model, (floats(2, 3, 16, 16), torch.tensor(7)))


def _conditional_unet() -> Subject:
    model = load("diffusers").UNet2DConditionModel(
        sample_size=16,
        in_channels=4,
        out_channels=4,
        layers_per_block=1,
        norm_num_groups=8,
        block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
    )
    return Subject(model, (floats(2, 4, 16, 16), torch.tensor(7), floats(2, 5, 16)))


def _autoencoder() -> Subject:
    model = load("diffusers").AutoencoderKL(
        block_out_channels=(16, 32),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=8,
    )
    return Subject(model, (floats(2, 3, 16, 16),))


def _diffusion_transformer() -> Subject:
    model = load("diffusers").DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        num_embeds_ada_norm=10,
    )
    given = {"timestep": torch.tensor([1, 2]), "class_labels": torch.tensor([0, 1])}
    return Subject(model, (floats(2, 4, 8, 8),), given)


def _named(library: str, make: Callable[[str], Subject], names: Any) -> dict[str, Callable[[], Subject]]:
    return {f"{library}/{name}": lambda name=name: make(name) for name in names}  # type: ignore[misc]


MODELS: dict[str, Callable[[], Subject]] = {
    **_named("transformers", _of_transformers, _TRANSFORMERS),
    **_named("torchvision", _of_torchvision, _TORCHVISION),
    **_named("timm", _of_timm, _TIMM),
    "diffusers/unet": _unet,
    "diffusers/conditional_unet": _conditional_unet,
    "diffusers/autoencoder": _autoencoder,
    "diffusers/transformer": _diffusion_transformer,
}


def make(name: str) -> Subject:
    """Make a model, in training mode, with the same weights each time."""
    torch.manual_seed(0)
    subject = MODELS[name]()
    subject.model.train()
    return subject
