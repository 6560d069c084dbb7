//! One branch, from the coordinator's side: the channel to its leader, and the events of each member over it.

use super::LEADER;
use super::hosts::{BranchMember, Note, beside_the_tree};
use super::link::{Leader, Listening, MemberLink, Speaking};
use super::members::{MemberEvent, Members};
use crate::attend::{carry, frame, write};
use crate::channel_child::ChannelChild;
use crate::end::{ChannelEnd, Left};
use crate::wire::WireError;
use crate::wire::branch::{self, FromLeader, ToLeader};
use crate::{Carried, Channel, HostEvent, LaunchError, Options, Via};
use homing_model::HostFacts;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Hosts that are tried as leaders, one after another.
const TRIES: usize = 3;
/// Time in which a leader may end after its last member has ended.
const FAREWELL: Duration = Duration::from_secs(5);
/// Pieces of a member's output that may wait for their reader.
const PIECES: usize = 16;

/// Makes one of these hosts the leader of all, in a separate thread.
pub(super) fn lead(mut members: Vec<BranchMember>, options: Options, note: Note) -> io::Result<()> {
    let led = move || {
        let mut whys = Vec::new();
        match open(&mut members, &options, &mut whys) {
            Some(channel) => through(members, channel, &options, note),
            None => {
                note(beside_the_tree("connected", members.iter().map(|m| m.plan.name.clone()), &whys));
                for member in members {
                    (member.on_event)(HostEvent::Astray { reason: "its branch has no leader".into() });
                }
            }
        }
    };
    homing_os::threads::begin(led).map(drop)
}

/// Opens the channel to the first host that can lead, and removes the hosts before it from `members`. A removed host
/// counts as refused: leader and worker are the same program, so it could not have a worker either.
fn open(members: &mut Vec<BranchMember>, options: &Options, whys: &mut Vec<(String, String)>) -> Option<Channel> {
    let options = Options { role: LEADER, carried: Carried::Worker, ..options.clone() };
    while members.len() > 1 && whys.len() < TRIES {
        let BranchMember { plan, on_event: tell } = &members[0];
        match crate::open(&plan.name, &plan.via, &options) {
            Ok(channel) => return Some(channel),
            Err(error) => {
                whys.push((plan.name.clone(), error.to_string()));
                tell(HostEvent::Refused(error));
                members.remove(0);
            }
        }
    }
    None
}

/// Serves one leader from the first message to the last.
fn through(hosts: Vec<BranchMember>, opened: Channel, options: &Options, note: Note) {
    let Channel { facts, to, from, keeper, .. } = opened;
    let (say, said) = channel();
    let leader = Arc::new(Leader::new(hosts.len(), say));
    let witness = keeper.witness();
    let mut branch = Branch {
        members: Members::new(hosts.len(), facts.ahead),
        inboxes: hosts.iter().map(|_| None).collect(),
        leader: leader.clone(),
        note,
        astray: Vec::new(),
        whys: Vec::new(),
        hosts,
    };
    let wrong = match homing_os::threads::begin(move || write(to, &said, &frame(&ToLeader::Ping))) {
        Err(e) => Err(e.to_string()),
        Ok(_) => {
            leader.queue_message(&branch.lead_request(options));
            spawn_reader(from).map_err(|e| e.to_string()).and_then(|said| branch.follow(&said, options.patience()))
        }
    };
    let via = &branch.hosts[0].plan.via;
    let why = wrong
        .err()
        .unwrap_or_else(|| ChannelEnd { why: "its connection has ended".into(), ..witness.end(via) }.reason());
    branch.give_up(&why);
    keeper.end(FAREWELL);
    leader.gone();
}

/// The messages of a leader that arrived together.
type LeaderMessages = Result<Vec<FromLeader>, WireError>;

/// Reads in a separate thread, so that the receiver can give up waiting. Reads at most a few messages ahead.
fn spawn_reader(mut from: Box<dyn BufRead + Send>) -> io::Result<Receiver<LeaderMessages>> {
    let (tell, said) = sync_channel(1);
    homing_os::threads::begin(move || {
        loop {
            let words: LeaderMessages = crate::wire::receive_some(&mut from);
            let ends = !matches!(&words, Ok(words) if !words.is_empty());
            if tell.send(words).is_err() || ends {
                return;
            }
        }
    })?;
    Ok(said)
}

/// A branch while its leader is connected.
struct Branch {
    hosts: Vec<BranchMember>,
    members: Members,
    /// The output of the workers, for the threads that read it.
    inboxes: Vec<Option<SyncSender<Vec<u8>>>>,
    leader: Arc<Leader>,
    note: Note,
    /// Members that the tree does not reach and that are not reported yet.
    astray: Vec<usize>,
    whys: Vec<(String, String)>,
}

impl Branch {
    fn lead_request(&self, options: &Options) -> ToLeader {
        let member = |host: &BranchMember| match &host.plan.via {
            Via::Ssh { target } => branch::MemberTarget { name: host.plan.name.clone(), target: target.clone() },
            _ => unreachable!("a branch is of hosts that are reached by ssh"),
        };
        let connect_timeout_s = options.connect_timeout_s;
        ToLeader::Lead { members: self.hosts.iter().map(member).collect(), connect_timeout_s }
    }

    /// Passes on the leader's messages until its channel ends. `Err`: a message breaks the protocol, or nothing came
    /// for `patience` while members are awaited. A leader reports a host that does not answer within that time.
    fn follow(&mut self, said: &Receiver<LeaderMessages>, patience: Duration) -> Result<(), String> {
        loop {
            let awaits = !self.members.all_answered();
            let said = match said.recv_timeout(if awaits { patience } else { Duration::MAX }) {
                Ok(Err(WireError::Io(_))) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("it has sent nothing for {} s", patience.as_secs()));
                }
                Ok(said) => said.map_err(|e| e.to_string())?,
            };
            for said in said {
                let (member, news) = self.members.accept_message(said)?;
                self.take(member, news);
            }
            if self.members.all_answered() {
                self.tell_astray();
            }
        }
    }

    fn take(&mut self, member: usize, news: MemberEvent) {
        match news {
            MemberEvent::Up(facts) => self.up(member, *facts),
            MemberEvent::Bytes(bytes) => {
                // An inbox without a reader belongs to a link that is being ended.
                let _ = self.inboxes[member].as_ref().map(|inbox| inbox.send(bytes));
            }
            MemberEvent::Unreached(why) => {
                self.whys.push((self.hosts[member].plan.name.clone(), why.clone()));
                self.strays(member, why);
            }
            MemberEvent::Ended { reason, all_ended } => {
                let left = if all_ended { Left::Nothing } else { Left::Unknown };
                self.leader.ended(member, ChannelEnd { why: reason, last_line: None, left });
                self.inboxes[member] = None;
            }
        }
    }

    fn up(&mut self, member: usize, facts: HostFacts) {
        let BranchMember { plan, on_event: tell } = &self.hosts[member];
        let (inbox, words) = sync_channel(PIECES);
        let link = MemberLink { leader: self.leader.clone(), member };
        let keeper = ChannelChild::led(Arc::new(link.clone()));
        let (to, from) = (Box::new(Speaking(link)), Box::new(Listening::to(words)));
        let channel = Channel { facts, to, from, keeper, obituary: None };
        let (name, via, told) = (plan.name.clone(), plan.via.clone(), tell.clone());
        let carried = move || carry(name, &via, channel, |heard| told(heard));
        match homing_os::threads::begin(carried) {
            Ok(_) => self.inboxes[member] = Some(inbox),
            Err(source) => {
                tell(HostEvent::Refused(LaunchError::Thread { host: plan.name.clone(), source }));
            }
        }
    }

    /// Gives a member up to another way of connecting. The thread of one that is up notices the end of its inbox and
    /// reports it.
    fn strays(&mut self, member: usize, reason: String) {
        self.astray.push(member);
        self.leader.ended(member, ChannelEnd { why: reason.clone(), last_line: None, left: Left::Unled });
        if self.inboxes[member].take().is_none() {
            (self.hosts[member].on_event)(HostEvent::Astray { reason });
        }
    }

    /// Gives up all members that are left: the leader sends nothing more.
    fn give_up(&mut self, why: &str) {
        let left = self.members.give_up();
        if left.is_empty() {
            return;
        }
        let leader = self.hosts[0].plan.name.clone();
        let why = format!("{leader} no longer leads its branch: {why}");
        left.into_iter().for_each(|member| self.strays(member, why.clone()));
        self.whys.push((leader, why));
        self.tell_astray();
    }

    fn tell_astray(&mut self) {
        let astray = std::mem::take(&mut self.astray);
        if !astray.is_empty() {
            let names = astray.iter().map(|member| self.hosts[*member].plan.name.clone());
            (self.note)(beside_the_tree("connected", names, &std::mem::take(&mut self.whys)));
        }
    }
}
