"""What `POST /simulate` answers."""

from gateway.decisions.records import PluginRecord, PluginScoreRecord, Record


class Verdict(Record):
    """Why a node is rejected, and by which plugin; "" if the cluster does not have the node.

    Evicting pods does not cure an unresolvable reason.
    """

    node: str
    plugin: str
    reason: str
    unresolvable: bool = False


class Ranked(Record):
    """A feasible node: its total, 0..100, the whole number that is sent, and both by plugin."""

    rank: int
    node: str
    total: float
    score: int
    plugins: list[PluginScoreRecord]


class Claim(Record):
    """The node that the pod would claim, and the plugins that want that."""

    node: str
    plugins: list[str]


class Answer(Record):
    """What the plugins of a profile say of a pod, now.

    Attributes:
        pod: NAMESPACE/NAME.
        profile: The profile.
        policy_revision: That of the policy.
        generation: That of the state that was used.
        words: The same in sentences; the first is what decides.
        nodes: How many nodes the question is about.
        feasible: The nodes that the pod may use.
        rejected: The others.
        filter: What each filter plugin did.
        score: What each score plugin did.
        ranking: The feasible nodes, the best first; empty without scores.
        claim: The node that the pod would claim; None if no plugin wants that.
        no_scores: Why there is no ranking although the profile has score plugins.
    """

    pod: str
    profile: str
    policy_revision: str
    generation: int
    words: list[str]
    nodes: int
    feasible: list[str]
    rejected: list[Verdict]
    filter: list[PluginRecord]
    score: list[PluginRecord]
    ranking: list[Ranked]
    claim: Claim | None = None
    no_scores: str = ""
