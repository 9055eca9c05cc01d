"""Module trees and layers, inferred from the keys and shapes of a state dict."""
