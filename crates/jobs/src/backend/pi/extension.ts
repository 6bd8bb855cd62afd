// Written by baton for one job, and loaded by that job's Pi alone.
//
// Pi has no permissions of its own, so this asks for them: what the job may not do by itself becomes a question to whoever started the
// job, and waits for its answer. What nobody answers does not run. It also hands over a prompt that Pi would take for a command.

import { realpathSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";

const LEVEL: "read-only" | "ask" | "edits" | "all" = "{level}";
const COMMAND = "{command}";
const MARK = "{mark}";

const HARMLESS = new Set(["read", "grep", "find", "ls"]);
const EDITS = new Set(["edit", "write"]);
const UNREAD = "this job is read-only: only read, grep, find and ls may be used";
const UNANSWERED = "nobody allowed this call, so it did not run";

/** Where a file really is, or would be: the nearest folder above it that exists decides. */
function real(file: string): string {
	try {
		return realpathSync(file);
	} catch {
		const above = dirname(file);
		return above === file ? file : resolve(real(above), relative(above, file));
	}
}

/** Whether a path is certainly in the folder. What Pi reads in another way than the system does is not. */
function inside(folder: string, path: unknown): boolean {
	if (typeof path !== "string" || !/^[\w./ -]+$/.test(path)) return false;
	const below = relative(real(folder), real(resolve(folder, path)));
	return below !== "" && below !== ".." && !below.startsWith(`..${sep}`) && !isAbsolute(below);
}

export default function (pi: any) {
	const always = new Set<string>();

	pi.registerCommand(COMMAND, {
		description: "baton: hands over the prompt of a job",
		handler: async (args: string) => pi.sendUserMessage(JSON.parse(args)),
	});

	pi.on("tool_call", async (event: any, ctx: any) => {
		const { toolName, toolCallId, input } = event;
		if (LEVEL === "all" || HARMLESS.has(toolName)) return;
		if (LEVEL === "read-only") return { block: true, reason: UNREAD };
		if (LEVEL === "edits" && EDITS.has(toolName) && inside(ctx.cwd, input?.path)) return;
		// "Always" is for the very same call: that is the rule that was shown.
		const alike = `${toolName} ${JSON.stringify(input)}`;
		if (always.has(alike)) return;
		const asked = JSON.stringify({ call: toolCallId, tool: toolName, input });
		const answer = await ctx.ui.input(MARK + asked, undefined, { signal: ctx.signal });
		const { allow, words } = answer === undefined ? ({} as any) : JSON.parse(answer);
		if (allow === "always") always.add(alike);
		if (allow !== "once" && allow !== "always") return { block: true, reason: words || UNANSWERED };
	});
}
