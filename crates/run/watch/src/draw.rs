//! Draws a scene on the screen.

use crate::rows::{self, Rows};
use crate::scene::{About, plain};
use crate::view::{Pane, Shown};
use crate::{Scene, WatchView};
use homing_model::units::count;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Row, Table, TableState};

/// The pane without the mark, hosts or tasks, gets at most this fraction of the lines. Each small table between the
/// two panes gets at most the fraction below it.
const SECOND_SHARE: u16 = 3;
const SMALL_SHARE: u16 = 8;
/// The lines of the smallest table: a head and a row.
const LEAST: u16 = 2;

const HELP: &str = "\
Tab          switches between the hosts and the tasks
arrows       mark another row; also the keys for pages, Home and End
s            sorts by the next column, which gets a star
/            shows only rows with these letters in their name, host or command
f            shows hosts in the same state as one row, or each by itself
Enter, o     shows the output of the marked task so far
k            ends the marked task, after a confirmation
space bar    pauses a replay, and continues it; + and - change its speed
Escape       removes the filter, then leaves
q            leaves; the run continues

CPU, I/O WAIT: percent of the processors in use, and of the time in which some
task waited for disks. NET, LINK: received and sent, and their share of the rate
of the link in one direction. MOVED: read and written so far, of tasks that move
much. READS, FROM: bytes of inputs by their layouts.

Any key goes back.";

/// Draws the scene in the way that the view has chosen.
pub fn draw(frame: &mut Frame, scene: &Scene, view: &mut WatchView) {
    let lines = Layout::vertical([1, 1, u16::from(!scene.sums.is_empty())].map(Constraint::Length));
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let [title, progress, sums] = lines.areas(top);
    frame.render_widget(Line::styled(plain(&scene.title), Modifier::BOLD), title);
    frame.render_widget(Line::raw(plain(&scene.progress)), progress);
    frame.render_widget(Line::raw(plain(&scene.sums)), sums);
    match view.shown.clone() {
        Shown::Help => frame.render_widget(Paragraph::new(HELP), middle),
        Shown::Output { task, text, back } => {
            let name = scene.tasks.iter().find(|known| known.id == task).map_or("(ended)", |task| &task.name);
            output(frame, middle, name, &text, back);
        }
        _ => panes(frame, middle, scene, view),
    }
    frame.render_widget(Line::raw(last_line(scene, view)), bottom);
}

fn last_line(scene: &Scene, view: &WatchView) -> String {
    match &view.shown {
        Shown::Filter => format!("filter: {}_  Enter keeps it, Escape removes it", plain(&view.filter)),
        Shown::Question(task) => {
            let known = scene.tasks.iter().find(|known| known.id == *task);
            let (name, command) = known.map_or(("(ended)", ""), |task| (&task.name, &task.command));
            format!("y ends task {}, any other key does not: {}", plain(name), plain(command))
        }
        Shown::Output { .. } => "arrows move, any other key goes back".into(),
        _ if !view.message.is_empty() => plain(&view.message),
        _ => {
            let filter = if view.filter.is_empty() { String::new() } else { format!("  only {:?}", view.filter) };
            let keys = match scene.about {
                About::Past => "q leaves  ? help  space + -  s sorts  / filter  f folds",
                _ => "q leaves  ? help  Tab  s sorts  / filter  f folds  Enter output  k ends",
            };
            let hint = if scene.hint.is_empty() { String::new() } else { format!("{}  ", scene.hint) };
            format!("{hint}{keys}{filter}")
        }
    }
}

fn output(frame: &mut Frame, area: Rect, name: &str, text: &str, back: usize) {
    let head = format!("output of task {} so far, then its errors:", plain(name));
    let lines: Vec<String> = text.lines().map(plain).collect();
    let end = lines.len().saturating_sub(back);
    let begin = end.saturating_sub(usize::from(area.height.saturating_sub(1)));
    let shown = if lines.is_empty() { "(nothing yet)".to_string() } else { lines[begin..end].join("\n") };
    frame.render_widget(Paragraph::new(Text::from(format!("{head}\n{shown}"))), area);
}

/// Draws the hosts, the small tables below them, and the tasks. Each gets the height that it needs, up to its limit.
fn panes(frame: &mut Frame, area: Rect, scene: &Scene, view: &mut WatchView) {
    let small = [rows::servers(scene), rows::waits(scene), rows::fetches(scene), rows::failures(scene)];
    let (hosts, tasks) = (rows::hosts(view, scene), rows::tasks(view, scene));
    let heights = heights(area.height, &hosts, &small, &tasks, view.pane);
    let areas = Layout::vertical(heights.map(Constraint::Length)).split(area);
    table(frame, areas[0], &hosts, view, Some(Pane::Hosts));
    small.iter().zip(&areas[1..]).for_each(|(rows, area)| table(frame, *area, rows, view, None));
    table(frame, areas[5], &tasks, view, Some(Pane::Tasks));
}

fn heights(all: u16, hosts: &Rows, small: &[Rows; 4], tasks: &Rows, pane: Pane) -> [u16; 6] {
    let needs = |rows: &Rows| if rows.rows.is_empty() { 0 } else { rows.rows.len().saturating_add(1).min(1000) as u16 };
    let most = (all / SMALL_SHARE).max(LEAST);
    let between: [u16; 4] = std::array::from_fn(|at| needs(&small[at]).min(most));
    let mut left = all;
    let between = between.map(|height| {
        // With very few lines, hosts and tasks come first.
        let height = if left.saturating_sub(height) < 3 * LEAST { 0 } else { height };
        left -= height;
        height
    });
    let (first, second) = if pane == Pane::Hosts { (hosts, tasks) } else { (tasks, hosts) };
    let share = (left / SECOND_SHARE).max(LEAST).max(left.saturating_sub(needs(first)));
    let second = needs(second).min(share).min(left);
    let first = left - second;
    let (hosts, tasks) = if pane == Pane::Hosts { (first.min(needs(hosts)), second) } else { (second, first) };
    [hosts, between[0], between[1], between[2], between[3], tasks]
}

fn table(frame: &mut Frame, area: Rect, rows: &Rows, view: &mut WatchView, pane: Option<Pane>) {
    if area.height < LEAST || rows.rows.is_empty() {
        return;
    }
    let mut state = pane.map_or_else(TableState::default, |pane| *view.table(pane));
    if pane == Some(view.pane) {
        state.select(Some(state.selected().unwrap_or(0).min(rows.rows.len() - 1)));
    } else {
        state.select(None);
    }
    let mut head = rows.head.clone();
    let fits = usize::from(area.height - 1);
    if let Some(more) = rows.rows.len().checked_sub(fits).filter(|more| *more > 0) {
        let last = head.len() - 1;
        let gap = if head[last].is_empty() { "" } else { "  " };
        head[last] = format!("{}{gap}(and {} more)", head[last], count(more as u64, rows.noun));
    }
    let seen = state.offset().min(rows.rows.len())..rows.rows.len().min(state.offset() + 2 * fits);
    let width = |column: usize| {
        let cells = rows.rows[seen.clone()].iter().chain([&head]).map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).min(usize::from(area.width) / 3) as u16
    };
    let last = head.len() - 1;
    let widths = (0..last).map(|column| Constraint::Length(width(column))).chain([Constraint::Fill(1)]);
    let style = |bad: bool| match bad {
        true if view.colors => Style::new().fg(Color::Red),
        _ => Style::new(),
    };
    let lines = rows.rows.iter().zip(&rows.bad).map(|(row, bad)| Row::new(row.clone()).style(style(*bad)));
    let table = Table::new(lines, widths)
        .header(Row::new(head).style(Modifier::UNDERLINED))
        .column_spacing(2)
        .row_highlight_style(Modifier::REVERSED);
    frame.render_stateful_widget(table, area, &mut state);
    if let Some(pane) = pane {
        let selected = state.selected().or(view.table(pane).selected());
        *view.table(pane) = state.with_selected(selected);
    }
}
