"""The trusted side: certificates, and the checks that re-derive them from the function."""

from goldstein.certificates.goldstein import GoldsteinCertificate, PlusCertificate
from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.minimum import MinimumCertificate, Refutation
from goldstein.certificates.near import NearCertificate, NearKKTCertificate
from goldstein.certificates.values import ValuesCertificate, ValuesKKTCertificate
from goldstein.checker.verification import Check, Verification
from goldstein.storage.codec import load_certificate

__all__ = [
    "Check", "GoldsteinCertificate", "KKTCertificate", "MinimumCertificate", "NearCertificate",
    "NearKKTCertificate", "PlusCertificate", "Refutation", "ValuesCertificate",
    "ValuesKKTCertificate", "Verification",
    "load_certificate",
]  # fmt: skip
