"""The paper's family: independent blocks of exchangeable variables."""
