"""Models that the paper compares with: Chow-Liu trees and latent tree models."""

from exchangeable.baselines.chow_liu import ChowLiuTree
from exchangeable.baselines.latent_tree import LatentTree

__all__ = ["ChowLiuTree", "LatentTree"]
