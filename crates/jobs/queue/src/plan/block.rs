//! Why a job waits.

/// The reason why a waiting job waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A user holds it back.
    Stopped,
    /// Its condition does not hold yet.
    After,
    /// Its condition cannot hold any more.
    Never,
    /// The queue takes no jobs, or is not known (any more).
    Closed,
    /// Its user may not use the queue.
    Barred,
    /// The queue starts jobs at other times; the text has them.
    Window(String),
    /// The queue starts no jobs; the text names the order.
    Inactive(String),
    /// The host starts no jobs; the text names the order.
    ClosedHost(String),
    /// The queue's slots are in use.
    QueueLimit,
    /// The user's share of the queue is in use.
    UserLimit,
    /// The queue's slots on the host are in use.
    HostLimit,
    /// The array runs as many elements as its limit.
    ArrayLimit,
    /// This load index is beyond the queue's threshold. An unknown index blocks nothing.
    Load(String),
    /// This requirement does not hold.
    Require(String),
    /// This requirement is more than the host can ever have.
    Beyond(String),
    /// Too few graphics processors are free.
    Gpus,
    /// Its storage server serves as many as may use it; the text names them.
    Storage(String),
    /// It takes more slots than there are.
    TooLarge,
    /// The host takes no jobs.
    NoSlots,
    /// Not enough slots are free.
    Slots,
    /// Not enough slots are free, and runs hold some; the text names them.
    SlotsOfRuns(String),
    /// A reason in the engine's own words.
    Other(String),
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Block::Stopped => write!(f, "held back by its user"),
            Block::After => write!(f, "its dependency condition does not hold yet"),
            Block::Never => write!(f, "its dependency condition can never hold"),
            Block::Closed => write!(f, "its queue is closed"),
            Block::Barred => write!(f, "its user may not use the queue"),
            Block::Window(when) => write!(f, "its queue starts jobs at {when}"),
            Block::Inactive(by) => write!(f, "its queue starts no jobs: {by}"),
            Block::ClosedHost(by) => write!(f, "its host starts no jobs: {by}"),
            Block::QueueLimit => write!(f, "the queue's slots are in use"),
            Block::UserLimit => write!(f, "the user's slots of the queue are in use"),
            Block::HostLimit => write!(f, "the queue's slots on the host are in use"),
            Block::ArrayLimit => write!(f, "the array's limit of running elements is reached"),
            Block::Load(index) => write!(f, "{index} is beyond the queue's threshold"),
            Block::Require(what) => write!(f, "{what} does not hold"),
            Block::Beyond(what) => write!(f, "{what} is more than its host can ever have"),
            Block::Gpus => write!(f, "other jobs hold the graphics processors of its host"),
            Block::Storage(who) => write!(f, "waits: {who}"),
            Block::TooLarge => write!(f, "it needs more slots than there are"),
            Block::NoSlots => write!(f, "its host takes no jobs: it has 0 slots"),
            Block::Slots => write!(f, "no free slots"),
            Block::SlotsOfRuns(who) => write!(f, "no free slots: {who}"),
            Block::Other(reason) => write!(f, "{reason}"),
        }
    }
}
