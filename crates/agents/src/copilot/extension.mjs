// Written by `baton setup copilot`; `baton setup copilot --remove` removes it.
//
// Reports to one child process, `baton link copilot`, what this session does, and submits the prompts that the child sends. Nothing is decided here, and no mail passes
// through: the prompt hook brings it. Lines of JSON: {"id","payload"} to the child; {"push"} from it. Whatever goes wrong, Copilot goes on as if this were not here.

import { spawn } from "node:child_process";
import { joinSession } from "@github/copilot-sdk/extension";

const BATON = "{baton}";
const HOME = "{home}";

/** The events of the main agent that are passed on. */
const TOLD = ["assistant.turn_start", "assistant.message", "assistant.idle"];
/** How often to check whether something that ran at the start still runs. */
const LOOK_AGAIN_MS = 500;
/** A child that has ended is started again after this time, then after twice as long, and so on. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;
/** A child that has lived this long worked. */
const WELL_MS = 60_000;
/** A child that reads nothing is given up when this much waits for it. */
const UNREAD_BYTES = 1 << 20;

/** The child, as long as this session has this extension. */
class Link {
	constructor(session) {
		this.session = session;
		this.child = undefined;
		this.last = 0;
		this.pause = FIRST_PAUSE_MS;
	}

	async start() {
		const child = spawn(BATON, ["link", "copilot", "--home", HOME], {
			stdio: ["pipe", "pipe", "ignore"],
			// In its own process group: it ends with its standard input, not with a key that the user presses.
			detached: true,
		});
		const started = Date.now();
		this.child = child;
		let over = false;
		const end = () => {
			if (over) return;
			over = true;
			this.child = undefined;
			child.kill("SIGKILL");
			if (Date.now() - started >= WELL_MS) this.pause = FIRST_PAUSE_MS;
			setTimeout(() => this.start().catch(() => {}), this.pause);
			this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
		};
		for (const part of [child, child.stdin, child.stdout]) part.on("error", end);
		child.on("exit", end);
		let rest = "";
		child.stdout.setEncoding("utf8");
		child.stdout.on("data", (piece) => {
			const lines = (rest + piece).split("\n");
			rest = lines.pop() ?? "";
			for (const line of lines) this.hear(line);
		});
		const isProcessing = async () => (await this.session.rpc.metadata.isProcessing()).processing;
		const processing = await isProcessing();
		this.tell("extension.joined", { processing });
		if (!processing) return;
		// A command such as /clear may run, and no event reports its end.
		while (this.child === child && (await isProcessing())) await new Promise((done) => setTimeout(done, LOOK_AGAIN_MS));
		if (this.child === child) this.tell("assistant.idle");
	}

	tell(extensionEvent, more = {}) {
		const stdin = this.child?.stdin;
		if (!stdin) return;
		if (stdin.writableLength > UNREAD_BYTES) {
			this.child.kill("SIGKILL");
			return;
		}
		const payload = { sessionId: this.session.sessionId, cwd: process.cwd(), extensionEvent, ...more };
		stdin.write(JSON.stringify({ id: ++this.last, payload }) + "\n");
	}

	hear(line) {
		try {
			const { push } = JSON.parse(line);
			// After whatever runs or waits there. If it fails, the child repeats it.
			if (push?.session_id === this.session.sessionId) this.session.send({ prompt: push.prompt }).catch(() => {});
		} catch {
			// Not ours to judge.
		}
	}
}

try {
	const session = await joinSession({});
	// Without a terminal (`-p`) no user would read the result of a pushed prompt, and hooks bring all mail. Only a terminal shows canvases.
	if (session.capabilities.ui?.canvases) {
		const link = new Link(session);
		for (const name of TOLD) {
			session.on(name, (event) => event.agentId || link.tell(name, { model: event.data?.model }));
		}
		await link.start();
	}
} catch {
	// Copilot goes on without us.
}
