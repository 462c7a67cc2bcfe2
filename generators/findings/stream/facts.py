from generators.findings.facts import Facts, FollowedCurve
from generators.findings.stream.measure import StreamMetrics

FACTS: Facts[StreamMetrics] = Facts(
    columns={
        "ev3": "share in three components",
        "ev3_high": "share in three components, 95 % to",
        "ev3_low": "share in three components, 95 % from",
        "in_P": "in P's directions",
        "along_ones": "along all-ones, times chance",
        "position": "share between positions",
        "position_high": "share between positions, 95 % to",
        "position_low": "share between positions, 95 % from",
        "share_high": "share, 95 % to",
        "share_low": "share, 95 % from",
        "token": "share between tokens",
    },
    search=("residual stream", "all-ones", "centering", "mean embedding", "MLP output"),
    curve=FollowedCurve(
        "stream-curve",
        "stream-curves",
        "The curve in the stream",
        "The mean hidden state at every position, half way through the model, in its own three components",
    ),
)
