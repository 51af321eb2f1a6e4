"""What editors and type checkers see: the names that `__init__.py` resolves on first use."""

from goldstein import atoms as atoms
from goldstein import calculus as calculus
from goldstein import certificates as certificates
from goldstein import errors as errors
from goldstein import models as models
from goldstein import problems as problems
from goldstein import prox as prox
from goldstein import solvers as solvers
from goldstein.api import (
    LookAround as LookAround,
)
from goldstein.api import (
    PrecisionWarning as PrecisionWarning,
)
from goldstein.api import (
    Question as Question,
)
from goldstein.api import (
    Search as Search,
)
from goldstein.api import (
    StationarityCurve as StationarityCurve,
)
from goldstein.api import (
    Target as Target,
)
from goldstein.api import (
    certify as certify,
)
from goldstein.api import (
    certify_result as certify_result,
)
from goldstein.api import (
    look_around as look_around,
)
from goldstein.api import (
    minimize as minimize,
)
from goldstein.api import (
    stationarity_curve as stationarity_curve,
)
from goldstein.api import (
    suggest_target as suggest_target,
)
from goldstein.calculus import (
    Expression as Expression,
)
from goldstein.calculus import (
    OuterLipschitz as OuterLipschitz,
)
from goldstein.calculus import (
    Variable as Variable,
)
from goldstein.calculus import (
    abs as abs,
)
from goldstein.calculus import (
    capped_l1 as capped_l1,
)
from goldstein.calculus import (
    clarke_distance as clarke_distance,
)
from goldstein.calculus import (
    concatenate as concatenate,
)
from goldstein.calculus import (
    eps_insensitive as eps_insensitive,
)
from goldstein.calculus import (
    gated_relu as gated_relu,
)
from goldstein.calculus import (
    goldstein_target as goldstein_target,
)
from goldstein.calculus import (
    hard_tanh as hard_tanh,
)
from goldstein.calculus import (
    hinge as hinge,
)
from goldstein.calculus import (
    huber as huber,
)
from goldstein.calculus import (
    leaky_relu as leaky_relu,
)
from goldstein.calculus import (
    linear as linear,
)
from goldstein.calculus import (
    log_sum as log_sum,
)
from goldstein.calculus import (
    logistic as logistic,
)
from goldstein.calculus import (
    max as max,
)
from goldstein.calculus import (
    max_affine as max_affine,
)
from goldstein.calculus import (
    maximum as maximum,
)
from goldstein.calculus import (
    mcp as mcp,
)
from goldstein.calculus import (
    min as min,
)
from goldstein.calculus import (
    minimum as minimum,
)
from goldstein.calculus import (
    norm1 as norm1,
)
from goldstein.calculus import (
    norm2 as norm2,
)
from goldstein.calculus import (
    pinball as pinball,
)
from goldstein.calculus import (
    pseudo_huber as pseudo_huber,
)
from goldstein.calculus import (
    ramp as ramp,
)
from goldstein.calculus import (
    relu as relu,
)
from goldstein.calculus import (
    relu6 as relu6,
)
from goldstein.calculus import (
    row_max as row_max,
)
from goldstein.calculus import (
    scad as scad,
)
from goldstein.calculus import (
    smooth_function as smooth_function,
)
from goldstein.calculus import (
    soft_threshold as soft_threshold,
)
from goldstein.calculus import (
    softmax_cross_entropy as softmax_cross_entropy,
)
from goldstein.calculus import (
    softplus as softplus,
)
from goldstein.calculus import (
    span_test as span_test,
)
from goldstein.calculus import (
    square as square,
)
from goldstein.calculus import (
    squared_hinge as squared_hinge,
)
from goldstein.calculus import (
    stack as stack,
)
from goldstein.calculus import (
    sum as sum,
)
from goldstein.calculus import (
    sum_squares as sum_squares,
)
from goldstein.calculus.tracing import (
    TraceError as TraceError,
)
from goldstein.calculus.tracing import (
    trace as trace,
)
from goldstein.certificates import (
    Check as Check,
)
from goldstein.certificates import (
    GoldsteinCertificate as GoldsteinCertificate,
)
from goldstein.certificates import (
    KKTCertificate as KKTCertificate,
)
from goldstein.certificates import (
    MinimumCertificate as MinimumCertificate,
)
from goldstein.certificates import (
    NearCertificate as NearCertificate,
)
from goldstein.certificates import (
    NearKKTCertificate as NearKKTCertificate,
)
from goldstein.certificates import (
    PlusCertificate as PlusCertificate,
)
from goldstein.certificates import (
    Refutation as Refutation,
)
from goldstein.certificates import (
    ValuesCertificate as ValuesCertificate,
)
from goldstein.certificates import (
    ValuesKKTCertificate as ValuesKKTCertificate,
)
from goldstein.certificates import (
    Verification as Verification,
)
from goldstein.certificates import (
    load_certificate as load_certificate,
)
from goldstein.certificates.confidence import (
    ConfidenceBound as ConfidenceBound,
)
from goldstein.certificates.confidence import (
    confidence_bound as confidence_bound,
)
from goldstein.certificates.confidence import (
    confidence_of as confidence_of,
)
from goldstein.errors import (
    CertificateFileError as CertificateFileError,
)
from goldstein.errors import (
    CheckpointError as CheckpointError,
)
from goldstein.errors import (
    GoldsteinError as GoldsteinError,
)
from goldstein.errors import (
    InputError as InputError,
)
from goldstein.errors import (
    InputTypeError as InputTypeError,
)
from goldstein.errors import (
    KinkError as KinkError,
)
from goldstein.errors import (
    MissingExtraError as MissingExtraError,
)
from goldstein.errors import (
    NotCertifiableError as NotCertifiableError,
)
from goldstein.errors import (
    NotDeterministicError as NotDeterministicError,
)
from goldstein.errors import (
    OracleError as OracleError,
)
from goldstein.errors import (
    WrongGradientError as WrongGradientError,
)
from goldstein.oracles import (
    FiniteSum as FiniteSum,
)
from goldstein.oracles import (
    FunctionOracle as FunctionOracle,
)
from goldstein.oracles import (
    Oracle as Oracle,
)
from goldstein.oracles import (
    PartiallySeparable as PartiallySeparable,
)
from goldstein.oracles import (
    SampleStream as SampleStream,
)
from goldstein.oracles.diagnose import (
    GradientCheck as GradientCheck,
)
from goldstein.oracles.diagnose import (
    check_gradient as check_gradient,
)
from goldstein.reductions.functions import (
    Violation as Violation,
)
from goldstein.result import (
    History as History,
)
from goldstein.result import (
    Result as Result,
)
from goldstein.result import (
    Status as Status,
)
from goldstein.solvers import (
    O2NC as O2NC,
)
from goldstein.solvers import (
    PINGD as PINGD,
)
from goldstein.solvers import (
    PSINGD as PSINGD,
)
from goldstein.solvers import (
    AdamO2NC as AdamO2NC,
)
from goldstein.solvers import (
    BundlePINGD as BundlePINGD,
)
from goldstein.solvers import (
    RAlgorithm as RAlgorithm,
)
from goldstein.solvers import (
    Solver as Solver,
)
from goldstein.solvers import (
    Values as Values,
)
from goldstein.solvers import (
    ZerothOrder as ZerothOrder,
)
from goldstein.storage.files import (
    CheckpointWarning as CheckpointWarning,
)

__version__: str
