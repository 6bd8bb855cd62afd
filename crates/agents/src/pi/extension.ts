// Written by `baton setup pi`; `baton setup pi --remove` removes it.
//
// Reports to one child process, `baton link pi`, what happens in Pi's sessions, and does what it answers. Nothing is decided here. Lines of JSON: {"id","payload"} to
// the child; {"id","answer"} and, unasked, {"push"} from it. Whatever goes wrong, Pi goes on as if this were not here, with one exception: if the user has set that a
// tool call must not run unjudged, a call that could not be judged does not run.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";

const BATON: string = "{baton}";
const HOME: string = "{home}";
const GUARD: string = "{guard}";

/** Pi never waits longer for an answer. */
const ANSWER_MS = 2_000;
/** How long a tool call waits to be judged: mail that waits for its store may be in front of it. */
const JUDGE_MS = 3_000;
const UNJUDGED = "baton's guard gave no answer, so this call did not run. Tell your person; `baton doctor` shows why.";
const UNSEEN = "baton's guard gave no answer, so this output is not shown. Tell your person; `baton doctor` shows why.";
/** A child that dies is started again with the next event, up to this often in a minute. */
const STARTS_PER_MINUTE = 5;
/** Without an event, the child is started again after this time, then after twice as long, and so on. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;
/** A child that has lived this long worked. */
const WELL_MS = 60_000;
/** A child that reads nothing is given up when this much waits for it. */
const UNREAD_BYTES = 4 << 20;
/** A push that is neither in the conversation nor on its way after this time may be repeated. */
const PUSH_MS = 10_000;
/** Input that has not become a turn after this time never will; no event reports that. */
const PROMPT_MS = 60_000;
/** A prompt on the command line comes within this time after the start. */
const START_MS = 2_000;
/** The most of a prompt that is passed on. */
const PROMPT_CHARS = 65_536;
/** The most tool results of a request that are named, latest first. */
const RESULTS_NAMED = 256;

const MARK = /\[baton-offer [^\]\s]*\]/g;
const TYPE = "baton";

/** What the child answers; null is an empty answer, undefined is none. */
type Answer = { text?: string; glance?: string; deny?: string; hold?: boolean; allow?: boolean; note?: string; output?: any } | null | undefined;
type Push = { session_id: string; mark: string; text: string; glance?: string };

/** The child, shared by all sessions and all copies of this extension in one process. */
class Link {
	child: any;
	starts: number[] = [];
	pause = FIRST_PAUSE_MS;
	revival: any;
	last = 0;
	waiting = new Map<number, (answer: Answer) => void>();
	/** Which copy of this extension reports for a session: the first one that saw it start. */
	sessions = new Map<string, Session>();

	/** Reports to the child. If there is none, it is started. */
	tell(payload: object): number {
		const id = ++this.last;
		const child = this.child ?? this.start();
		if (!child) return 0;
		if (child.stdin.writableLength > UNREAD_BYTES) this.end(child);
		else child.stdin.write(JSON.stringify({ id, payload }) + "\n");
		return this.child ? id : 0;
	}

	/** Reports to the child and waits for its answer. */
	ask(payload: object, patience: number = ANSWER_MS): Promise<Answer> {
		const id = this.tell(payload);
		if (!id) return Promise.resolve(undefined);
		return new Promise((resolve) => {
			const child = this.child;
			// Keeps the process alive while it waits, because the child does not.
			const timer = setTimeout(() => this.end(child), patience);
			this.waiting.set(id, (answer) => {
				clearTimeout(timer);
				this.waiting.delete(id);
				resolve(answer);
			});
		});
	}

	start(): any {
		const now = Date.now();
		this.starts = this.starts.filter((at) => now - at < 60_000);
		if (this.starts.length >= STARTS_PER_MINUTE) return undefined;
		this.starts.push(now);
		// In its own process group, so that it still hears of the end when a run is interrupted. It ends with its standard input.
		const child: any = spawn(BATON, ["link", "pi", "--home", HOME], {
			stdio: ["pipe", "pipe", "ignore"],
			detached: true,
		});
		this.child = child;
		child.on("error", () => this.end(child));
		child.on("exit", () => this.end(child));
		child.stdin.on("error", () => this.end(child));
		child.stdout.on("error", () => this.end(child));
		let rest = "";
		child.stdout.setEncoding("utf8");
		child.stdout.on("data", (piece: string) => {
			const lines = (rest + piece).split("\n");
			rest = lines.pop() ?? "";
			for (const line of lines) this.hear(line);
		});
		for (const handle of [child, child.stdin, child.stdout]) handle.unref?.();
		return child;
	}

	hear(line: string) {
		try {
			const said = JSON.parse(line);
			if (said.push) this.sessions.get(said.push.session_id)?.push(said.push);
			else this.waiting.get(said.id)?.(said.answer ?? null);
		} catch {
			// Not ours to judge.
		}
	}

	/** Starts another child after a pause, even if no session does anything: idle sessions get mail too. */
	reviveLater() {
		if (this.revival) return;
		this.revival = setTimeout(() => {
			this.revival = undefined;
			if (this.child ?? this.start()) {
				for (const session of this.sessions.values()) session.announce();
			} else this.reviveLater();
		}, this.pause);
		this.revival.unref?.();
		this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
	}

	/** Calls that wait for this child get no answer. */
	end(child: any) {
		if (this.child !== child) return;
		this.child = undefined;
		child.kill("SIGKILL");
		if (Date.now() - (this.starts.at(-1) ?? 0) >= WELL_MS) this.pause = FIRST_PAUSE_MS;
		this.reviveLater();
		for (const resolve of [...this.waiting.values()]) resolve(undefined);
	}
}

/** Has a person decide about a call, by a hook that waits for that. Whatever goes wrong, the call stays refused. */
function decided(payload: object, mode: string, refused: Answer): Promise<Answer> {
	return new Promise((resolve) => {
		const child: any = spawn(BATON, ["hook", "pi", "tool_call", "--guard", "--hold", "--home", HOME], {
			stdio: ["pipe", "pipe", "ignore"],
			// Pi's arguments are gone, and with them how it was started.
			env: { ...process.env, BATON_PI_MODE: mode },
		});
		let said = "";
		child.stdout.setEncoding("utf8");
		child.stdout.on("data", (piece: string) => (said += piece));
		for (const part of [child, child.stdin, child.stdout]) part.on("error", () => resolve(refused));
		child.on("close", () => {
			try {
				const answer = JSON.parse(said);
				resolve(answer?.allow === true || answer?.deny ? answer : refused);
			} catch {
				resolve(refused);
			}
		});
		child.stdin.end(JSON.stringify(payload));
	});
}

/** One conversation of this process. */
class Session {
	link: Link;
	pi: any;
	id: string;
	ctx: any;
	/** Our id of the running turn: Pi has none. */
	turn = "";
	settled = true;
	/** A prompt is on its way to the model. A push meanwhile would cost the user that prompt. */
	prompting: any;
	held: Push[] = [];
	/** When each push was handed over. */
	pushed = new Map<string, number>();
	/** What the current request shows the model. */
	shown: object | undefined;
	answered = false;

	constructor(link: Link, pi: any, id: string, ctx: any) {
		this.link = link;
		this.pi = pi;
		this.id = id;
		this.ctx = ctx;
	}

	/** Pi refuses every call through an object of a former runtime. */
	lives(): boolean {
		try {
			this.ctx.isIdle();
			return true;
		} catch {
			return false;
		}
	}

	payload(name: string, more: object = {}): object {
		return {
			session_id: this.id,
			hook_event_name: name,
			cwd: this.ctx.cwd,
			transcript_path: this.ctx.sessionManager.getSessionFile(),
			turn_id: this.turn,
			...more,
		};
	}

	tell(name: string, more?: object) {
		this.link.tell(this.payload(name, more));
	}

	ask(name: string, more?: object, patience?: number): Promise<Answer> {
		return this.link.ask(this.payload(name, more), patience);
	}

	/** Reports an idle session to a new child. Other sessions report themselves. */
	announce() {
		try {
			if (this.settled && this.prompting === undefined && this.ctx.isIdle()) this.tell("agent_settled");
		} catch {
			// It belongs to a former runtime.
		}
	}

	/** The guard's ruling on a tool call. If the guard can't be reached, the call runs, unless it must not. */
	async judged(event: any): Promise<Answer> {
		if (GUARD === "off") return null;
		const { toolName, toolCallId, input } = event;
		let answer: Answer;
		try {
			answer = await this.ask("tool_call", { toolName, toolCallId, input }, JUDGE_MS);
			if (answer?.hold) answer = await decided(this.payload("tool_call", { toolName, toolCallId, input }), this.ctx.mode, answer);
		} catch {
			answer = undefined;
		}
		return answer === undefined && GUARD === "closed" ? { deny: UNJUDGED } : answer;
	}

	beginTurn() {
		// Ids of later turns are greater.
		this.turn = `${Date.now().toString(36).padStart(9, "0")}-${randomUUID()}`;
		this.settled = false;
	}

	/** Reports what the model was shown, when its answer is in Pi's file. */
	tellAnswered() {
		if (!this.answered) return;
		this.answered = false;
		this.tell("context", { shown: this.shown });
	}

	/** Adds to the conversation without asking the model. */
	note(answer: Answer) {
		if (answer?.text) this.pi.sendMessage(message(answer.text), { triggerTurn: false });
		this.glance(answer?.glance);
	}

	/** Shows the user who wrote what. Without a screen, nothing happens. */
	glance(lines: string | undefined) {
		try {
			if (lines && this.ctx.hasUI) this.ctx.ui.notify(lines, "info");
		} catch {
			// It belongs to a former runtime.
		}
	}

	/**
	 * Whether a push would do harm: to a prompt that is on its way, which it would cost the user; or to a turn, at whose end Pi may forget what
	 * waits. A run without a user is idle only before its next prompt, or at its end.
	 */
	holdsPushes(): boolean {
		const unattended = this.ctx.mode === "print" || this.ctx.mode === "json";
		return this.prompting !== undefined || unattended || !this.ctx.isIdle();
	}

	/** Where the next request will show it. */
	isInConversation(mark: string): boolean {
		return this.ctx.sessionManager.getBranch().some((entry: any) => marksOfEntry(entry).includes(mark));
	}

	/** A push may be repeated until a request has shown it. */
	push(push: Push) {
		if (!this.held.some((other) => other.mark === push.mark)) this.held.push(push);
		this.pushHeld();
	}

	pushHeld() {
		if (this.holdsPushes()) return;
		for (const push of this.takeHeld()) {
			try {
				this.pi.sendMessage(message(push.text), { triggerTurn: true });
				this.glance(push.glance);
			} catch {
				this.tell("PushFailed", { shown: { marks: [push.mark], ids: [] } });
			}
		}
	}

	/** Pushes that are neither in the conversation nor on their way. */
	takeHeld(): Push[] {
		const now = Date.now();
		const isNew = (push: Push) => now - (this.pushed.get(push.mark) ?? 0) >= PUSH_MS && !this.isInConversation(push.mark);
		const taken = this.held.splice(0).filter(isNew);
		for (const push of taken) this.pushed.set(push.mark, now);
		return taken;
	}

	/** Everything that goes into the conversation now. */
	text(answer: Answer): string {
		const pushes = this.takeHeld();
		const texts = pushes.map((push) => push.text);
		if (answer?.text) texts.push(answer.text);
		for (const { glance } of pushes) this.glance(glance);
		this.glance(answer?.glance);
		return texts.join("\n\n");
	}

	promptIsOnItsWay(limit: number = PROMPT_MS) {
		clearTimeout(this.prompting);
		this.prompting = setTimeout(() => this.promptIsThrough(), limit);
		this.prompting.unref();
	}

	promptIsThrough() {
		clearTimeout(this.prompting);
		this.prompting = undefined;
		this.pushHeld();
	}
}

function message(text: string): object {
	return { customType: TYPE, content: text, display: true };
}

function marksIn(text: string): string[] {
	return text.match(MARK) ?? [];
}

function textOf(content: any): string {
	if (typeof content === "string") return content;
	if (!Array.isArray(content)) return "";
	return content.map((part) => (part?.type === "text" ? String(part.text) : "")).join("\n");
}

/** The marks where they count: in what we added and in what tools printed, not in what people or models say. */
function marksOf(message: any): string[] {
	const counts = message.role === "toolResult" || (message.role === "custom" && message.customType === TYPE);
	return counts ? marksIn(textOf(message.content)) : [];
}

function marksOfEntry(entry: any): string[] {
	if (entry.type === "message") return marksOf(entry.message);
	return entry.type === "custom_message" && entry.customType === TYPE ? marksIn(textOf(entry.content)) : [];
}

/** The one child of this process and this home. A reload or a second copy of this file finds it again. */
function sharedLink(): Link {
	const shared = globalThis as any;
	const key = Symbol.for(`baton link pi ${HOME}`);
	return (shared[key] ??= new Link());
}

export default function (pi: any) {
	const link = sharedLink();
	let own: Session | undefined;

	/** Handles an event of a session that this copy reports for; never fails. */
	const on = (name: string, handle: (session: Session, event: any) => any) =>
		pi.on(name, async (event: any, ctx: any) => {
			const session = own;
			if (!session || session.id !== ctx.sessionManager.getSessionId()) return undefined;
			try {
				session.ctx = ctx;
				return await handle(session, event);
			} catch {
				return undefined;
			}
		});

	pi.on("session_start", (event: any, ctx: any) => {
		try {
			const id = ctx.sessionManager.getSessionId();
			if (link.sessions.get(id)?.lives()) return;
			const session = new Session(link, pi, id, ctx);
			own = session;
			link.sessions.set(id, session);
			if (event.reason === "startup" && ctx.mode !== "rpc") session.promptIsOnItsWay(START_MS);
			const answer = session.ask("session_start", { source: event.reason });
			answer.then((answer) => session.note(answer)).catch(() => {});
		} catch {
			// Pi goes on without us.
		}
	});

	on("session_shutdown", (session, event) => {
		own = undefined;
		link.sessions.delete(session.id);
		// After a reload, a new copy of this extension goes on with the session.
		if (event.reason !== "reload") session.tell("session_shutdown", { source: event.reason });
	});

	on("input", (session, event) => {
		if (event.streamingBehavior || !session.ctx.isIdle()) return;
		session.promptIsOnItsWay();
	});

	on("before_agent_start", async (session, event) => {
		session.promptIsOnItsWay();
		session.beginTurn();
		const prompt = event.prompt.slice(0, PROMPT_CHARS);
		const answer = await session.ask("before_agent_start", { prompt });
		const text = session.text(answer);
		return text ? { message: message(text) } : undefined;
	});

	on("agent_start", (session) => {
		// A turn without a prompt, or the next part of a turn that goes on.
		if (session.settled) session.beginTurn();
		session.promptIsThrough();
		session.tell("agent_start");
	});

	on("context", (session, event) => {
		const results = event.messages.filter((message: any) => message.role === "toolResult");
		const ids = results.slice(-RESULTS_NAMED).map((message: any) => message.toolCallId);
		session.shown = { marks: event.messages.flatMap(marksOf), ids: [session.turn, ...ids] };
		session.answered = false;
	});

	on("message_end", (session, event) => {
		const { role, stopReason } = event.message;
		if (role !== "assistant") return;
		session.answered = ["stop", "length", "toolUse"].includes(stopReason);
	});

	on("tool_execution_start", (session) => session.tellAnswered());
	on("turn_end", (session) => session.tellAnswered());

	on("tool_call", async (session, event) => {
		const answer = await session.judged(event);
		return answer?.deny ? { block: true, reason: answer.deny } : undefined;
	});

	on("tool_result", async (session, event) => {
		const { toolName, toolCallId, input, content } = event;
		const shown = GUARD === "off" ? {} : { toolName, input, content };
		const more = { tool_name: toolName, tool_use_id: toolCallId, ...shown };
		const answer = await session.ask("tool_result", more);
		const text = [session.text(answer), answer?.note].filter(Boolean).join("\n\n");
		const unseen = answer === undefined && GUARD === "closed" ? [{ type: "text", text: UNSEEN }] : undefined;
		const parts = answer?.output ?? unseen;
		if (!text && !parts) return undefined;
		return { content: text ? [...(parts ?? content), { type: "text", text }] : parts };
	});

	on("agent_before_settle", async (session, event) => {
		const answer = await session.ask("agent_before_settle", { source: event.outcome });
		const text = session.text(answer);
		if (!text) return undefined;
		return { entries: [...event.entries, { type: "custom_message", ...message(text) }], continue: true };
	});

	on("agent_settled", (session) => {
		session.settled = true;
		session.tell("agent_settled");
		session.pushHeld();
	});

	/** The user went on from another place: what is on the branch that was left is no longer in the conversation. */
	on("session_tree", (session) => {
		const marks = session.ctx.sessionManager.getEntries().flatMap(marksOfEntry);
		const left = marks.filter((mark: string) => !session.isInConversation(mark));
		for (const mark of left) session.pushed.delete(mark);
		if (left.length) session.tell("session_tree", { shown: { marks: left, ids: [] } });
	});

	on("session_before_compact", (session) => session.tell("session_before_compact"));
	on("session_compact", (session) => {
		const answer = session.ask("session_compact", { source: "compact" });
		answer.then((answer) => session.note(answer)).catch(() => {});
	});
}
