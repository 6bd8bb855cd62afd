// What OpenCode's plugin does with questions and answers, against a simulated OpenCode and a simulated link.
//
//   node opencode.mjs PLUGIN     in a folder where `link` is the link that the plugin starts, with the socket `socket` beside it
import assert from "node:assert/strict"
import { once } from "node:events"
import { createServer } from "node:net"
import test, { after } from "node:test"
import { pathToFileURL } from "node:url"

const LIMIT = 20000 // ms

process.env.OPENCODE_SERVER_PASSWORD = "secret"

// What the links were told, all of them in one list.
const told = []
// What a link answers about calls, by their ids; nothing about others.
const verdicts = new Map()
let link
const server = createServer((socket) => {
  link = socket
  let rest = ""
  socket.setEncoding("utf8")
  socket.on("data", (text) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop()
    for (const { id, payload } of lines.map((line) => JSON.parse(line))) {
      told.push(payload)
      const answer = payload.hook_event_name === "tool.execute.before" ? verdicts.get(payload.callID) : null
      if (id) socket.write(`${JSON.stringify({ id, answer: answer ?? null })}\n`)
    }
  })
  socket.on("error", () => {})
})
server.listen("socket")
await once(server, "listening")
after(() => {
  server.close()
  link?.destroy()
})

const { Baton } = await import(pathToFileURL(process.argv[2]))

async function eventually(what, is) {
  const until = Date.now() + LIMIT
  for (;;) {
    const found = is()
    if (found) return found
    assert.ok(Date.now() < until, `${what} never came: ${JSON.stringify(told)}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

const toldOf = (name, request) => told.filter((event) => event.hook_event_name === name && (event.request ?? event.asked?.id) === request)

let number = 0

// An OpenCode with one session whose tool call waits for one question. `client` and `address` say how the two routes to it behave: "holds" accepts an answer, "drops" says
// yes and does nothing, "knows nothing" has no such question.
async function opencode({ client = "holds", address = "knows nothing", serverUrl = "http://127.0.0.1:7777/", kind = "permission", tool = true } = {}) {
  const name = `${++number}`
  const id = `${kind}_${name}`
  const session = `ses_${name}`
  const world = { id, session, kind, waits: true, busy: true, state: { status: "running" }, calls: {}, posts: [], headers: [] }
  const answered = (path, body) => {
    if (path.endsWith("/reject")) return world.emit("question.rejected", {})
    return world.emit(`${kind}.replied`, body.answers ? { answers: body.answers } : { reply: body.reply })
  }
  // One call of the server: its status and its document.
  const call = async (way, method, path, body) => {
    const knows = (way === "client" ? client : address) !== "knows nothing"
    if (method === "post") {
      world.posts.push({ way, path, body })
      const status = await world.onPost?.(way)
      if (status) return [status]
      if ((way === "client" ? client : address) !== "holds") return [200, true]
      world.waits = false
      await answered(path, body)
      return [200, true]
    }
    if (path === `/${kind}`) return [200, knows && world.waits ? [{ id: "another" }, { id }] : []]
    if (path === "/session/status") return [200, world.busy ? { [session]: { type: "busy" } } : {}]
    if (path.startsWith(`/session/${session}/message?`)) {
      if (!world.state) throw new Error("nobody answers")
      return [200, [{ parts: [{ type: "text" }] }, { parts: Object.entries(world.calls).map(([callID, state]) => ({ callID, state })) }]]
    }
    if (path === `/session/${session}/message/msg_1`) return [200, { parts: [{ type: "text" }, { callID: "call_1", state: world.state }] }]
    throw new Error(`unexpected ${method} ${path}`)
  }
  const byClient = (method) => async ({ url, body }) => {
    const [status, data] = await call("client", method, url, body)
    return { data, response: { status } }
  }
  const fetched = globalThis.fetch
  globalThis.fetch = async (url, { method, headers, body }) => {
    const own = new URL(url)
    if (own.origin !== new URL(serverUrl).origin) return fetched(url, { method, headers, body })
    world.headers.push(headers)
    const [status, data] = await call("address", method.toLowerCase(), own.pathname, body && JSON.parse(body))
    return new Response(JSON.stringify(data ?? null), { status, headers: { "content-type": "application/json" } })
  }
  const sdk = {
    _client: { get: byClient("get"), post: byClient("post") },
    session: {
      get: async () => {
        const known = world.sessionIsKnown
        world.sessionIsKnown = undefined
        await known
        return { data: { directory: "/the project" } }
      },
      status: async () => ({ data: {} }),
    },
  }
  const hooks = await Baton({ client: sdk, directory: "/the project", serverUrl })
  world.hooks = hooks
  world.emit = (type, more) => hooks.event({ event: { type, properties: { sessionID: session, requestID: id, ...more } } })
  world.ask = () => {
    const about = { id, sessionID: session, permission: "bash", patterns: ["ls"], metadata: world.metadata ?? { command: "ls" }, always: ["ls *"] }
    return hooks.event({ event: { type: `${kind}.asked`, properties: { ...about, ...(tool && { tool: { messageID: "msg_1", callID: "call_1" } }) } } })
  }
  // Gives an answer as the link does, and waits for the result.
  world.answer = async (answer, request = id) => {
    const before = toldOf("approval.outcome", request).length
    link.write(`${JSON.stringify({ reply: { request, kind, session_id: session, ...answer } })}\n`)
    return eventually(`what became of ${request}`, () => toldOf("approval.outcome", request)[before])
  }
  // OpenCode shows a state of a call.
  world.show = (callID, state) => {
    world.calls[callID] = state
    return hooks.event({ event: { type: "message.part.updated", properties: { part: { type: "tool", sessionID: session, callID, state } } } })
  }
  return world
}

const asked = async (options) => {
  const world = await opencode(options)
  await world.ask()
  await eventually(`the question ${world.id}`, () => toldOf(`${world.kind}.asked`, world.id)[0])
  return world
}

test("a question is told whole, and its answer goes back by the client", async () => {
  const world = await asked()
  const [event] = toldOf("permission.asked", world.id)
  assert.deepEqual(event.asked.tool, { messageID: "msg_1", callID: "call_1" })
  assert.deepEqual([event.session_id, event.cwd, event.asked.always], [world.session, "/the project", ["ls *"]])
  const outcome = await world.answer({ answer: "once" })
  assert.equal(outcome.outcome, "effective")
  assert.deepEqual(world.posts, [{ way: "client", path: `/permission/${world.id}/reply`, body: { reply: "once" } }])
  await world.answer({ answer: "reject" }).then((late) => assert.equal(late.outcome, "gone"))
  assert.equal(world.posts.length, 1, "there is no second answer")
  assert.equal(toldOf("permission.replied", world.id).length, 1)
})

test("s24 what the model says about who calls is gone, also where nobody knows the session", async () => {
  const world = await opencode()
  const args = { baton_caller: { session_id: "ses_peer" } }
  await world.hooks["tool.execute.before"]({ tool: "baton_send_message", sessionID: "ses_nowhere", callID: "call_1" }, { args }).catch(() => {})
  assert.notEqual(args.baton_caller?.session_id, "ses_peer")
})

test("s1 what is too long to be told says how much of it is missing", async () => {
  const world = await opencode()
  world.metadata = { command: "x".repeat(256 * 1024 + 9) }
  await world.ask()
  const { asked } = await eventually("the question", () => toldOf("permission.asked", world.id)[0])
  assert.deepEqual([asked.metadata.command.length, asked.left_out], [256 * 1024, 9])
})

test("a version that asks without the whole command is helped out", async () => {
  const world = await opencode()
  world.metadata = {}
  await world.hooks["tool.execute.before"]({ tool: "bash", sessionID: world.session, callID: "call_1" }, { args: { command: "cd x && ls" } })
  await world.ask()
  const event = await eventually("the question", () => toldOf("permission.asked", world.id)[0])
  assert.deepEqual(event.asked.metadata, { command: "cd x && ls" })
  assert.equal((await world.answer({ answer: "once" })).outcome, "effective")
})

test("where the client reaches another part of the process, the answer goes to the address", async () => {
  for (const client of ["knows nothing", "drops"]) {
    const world = await asked({ client, address: "holds" })
    const outcome = await world.answer({ answer: "reject", message: "use ls" })
    assert.equal(outcome.outcome, "effective", client)
    const { way, body } = world.posts.at(-1)
    assert.deepEqual([way, body], ["address", { reply: "reject", message: "use ls" }])
    assert.equal(world.headers[0]["x-opencode-directory"], "%2Fthe%20project")
    assert.equal(world.headers[0].authorization, `Basic ${btoa("opencode:secret")}`)
  }
})

test("a stranger who listens at the address is told nothing", async () => {
  const world = await asked({ client: "knows nothing", serverUrl: "http://localhost:4096/" })
  const outcome = await world.answer({ answer: "once" })
  assert.equal(outcome.outcome, "refused")
  assert.deepEqual(world.posts, [])
  assert.ok(world.headers.length > 0 && world.headers.every((headers) => !headers.authorization), "nor the password")
  // It still waits, and may be answered by any route.
  world.onPost = undefined
  assert.equal((await world.answer({ answer: "once" })).outcome, "refused")
})

test("what was dropped everywhere is not said again", async () => {
  const world = await asked({ client: "drops", address: "drops" })
  assert.equal((await world.answer({ answer: "once" })).outcome, "unsure")
  assert.deepEqual(world.posts.map(({ way }) => way), ["client", "address"])
  assert.equal((await world.answer({ answer: "once" })).outcome, "unsure")
  assert.equal(world.posts.length, 2)
})

test("what is asked in a turn that was aborted is gone, though it is listed", async () => {
  const world = await asked()
  world.state = { status: "error", error: "Tool execution aborted" }
  assert.equal((await world.answer({ answer: "once" })).outcome, "gone")
  const idle = await asked({ tool: false })
  idle.busy = false
  assert.equal((await idle.answer({ answer: "once" })).outcome, "gone")
  assert.deepEqual([...world.posts, ...idle.posts], [])
})

test("an abort in the very moment is seen, though OpenCode says that it was answered", async () => {
  const world = await asked()
  world.onPost = () => void (world.state = { status: "error", error: "Tool execution aborted" })
  assert.equal((await world.answer({ answer: "once" })).outcome, "gone")
  assert.equal(world.posts.length, 1)
})

test("somebody else's answer in the very moment is not taken for ours", async () => {
  const world = await asked()
  world.onPost = async () => {
    world.waits = false
    await world.emit("permission.replied", { reply: "reject" })
    return 404
  }
  const outcome = await world.answer({ answer: "once" })
  assert.equal(outcome.outcome, "gone")
  assert.match(outcome.detail, /reject/)
})

test("an answer that OpenCode does not understand is refused, and another one is taken", async () => {
  const world = await asked({ kind: "question" })
  world.onPost = () => 400
  assert.equal((await world.answer({ answers: [["A"], ["B"]] })).outcome, "refused")
  world.onPost = undefined
  assert.equal((await world.answer({ answers: [["A"]] })).outcome, "effective")
  assert.deepEqual(world.posts.at(-1), { way: "client", path: `/question/${world.id}/reply`, body: { answers: [["A"]] } })
})

test("a question is dismissed without a word", async () => {
  const world = await asked({ kind: "question" })
  assert.equal((await world.answer({ answer: "reject" })).outcome, "effective")
  assert.equal(world.posts[0].path, `/question/${world.id}/reject`)
})

test("nobody waits in a session that is idle", async () => {
  const world = await asked()
  await world.emit("session.idle")
  await eventually("its end", () => toldOf("approval.gone", world.id)[0])
  await world.emit("session.idle")
  assert.equal((await world.answer({ answer: "once" })).outcome, "gone")
  assert.equal(toldOf("approval.gone", world.id).length, 1)
  assert.deepEqual(world.posts, [])
})

test("a question is told before its end, however long that takes", async () => {
  const world = await opencode()
  // Only the first question waits.
  world.sessionIsKnown = new Promise((resolve) => setTimeout(resolve, 200))
  await Promise.all([world.ask(), world.emit("permission.replied", { reply: "reject" })])
  await eventually("its end", () => toldOf("permission.replied", world.id)[0])
  const names = told.filter((event) => (event.request ?? event.asked?.id) === world.id).map((event) => event.hook_event_name)
  assert.deepEqual(names, ["permission.asked", "permission.replied"])
})

test("a question that two plugins of one process see is told once", async () => {
  const world = await asked()
  await world.ask()
  assert.equal((await world.answer({ answer: "always" })).outcome, "effective")
  assert.equal(toldOf("permission.asked", world.id).length, 1)
})

test("the next link hears what is waited for, and its answer is taken", async () => {
  const world = await asked()
  const killed = link
  killed.destroy()
  await eventually("the question again", () => toldOf("permission.asked", world.id)[1])
  assert.notEqual(link, killed)
  assert.equal((await world.answer({ answer: "once" })).outcome, "effective")
})

const REFUSAL = "Files are counted. A person has to decide this."
const LATE = "nobody answered in time: it was refused"

// A call that the guard wants confirmed, in the hook before it. `before` is what the hook does: "goes on", or the text that it throws.
async function held(world, callID = `call_of_${world.session}`, { ms = LIMIT, hooks = world.hooks } = {}) {
  verdicts.set(callID, { deny: REFUSAL, hold: { ms, why: "Files are counted." } })
  world.calls[callID] = { status: "running" }
  const about = [{ tool: "bash", sessionID: world.session, callID }, { args: { command: "touch it" } }]
  const call = { callID, request: `held-${world.session}-${callID}` }
  call.before = hooks["tool.execute.before"](...about).then(
    () => (call.is = "goes on"),
    (error) => (call.is = error.message),
  )
  call.after = () => hooks["tool.execute.after"]({ ...about[0], args: about[1].args }, { output: "" })
  await eventually(`the question ${call.request}`, () => toldOf("call.asked", call.request)[0])
  return call
}

// The result of an answer, and what the hook does, if OpenCode shows nothing of the call.
const silently = async (world, call, answer) => [(await world.answer(answer, call.request)).outcome, await call.before]
// The same if it shows the call's state.
const openly = (world, call, answer) => {
  call.before.then(() => world.show(call.callID, world.calls[call.callID]))
  return silently(world, call, answer)
}

test("a held call is told with all of it, and waits", async () => {
  const world = await opencode()
  const call = await held(world)
  const [event] = toldOf("call.asked", call.request)
  assert.deepEqual([event.session_id, event.cwd, event.tool, event.callID], [world.session, "/the project", "bash", call.callID])
  assert.deepEqual([event.args, event.why], [{ command: "touch it" }, "Files are counted."])
  await world.show(call.callID, { status: "running" })
  assert.equal(call.is, undefined, "nobody has answered")
  world.state = undefined
  const answered = world.answer({ answer: "once" }, call.request)
  assert.equal(await call.before, "goes on")
  await eventually("that it goes on", () => told.find((event) => event.hook_event_name === "call.decided" && event.session_id === world.session))
  assert.deepEqual(toldOf("approval.outcome", call.request), [], "nothing shows yet what came of it")
  await world.show(call.callID, { status: "running", metadata: {} })
  assert.equal((await answered).outcome, "effective")
  assert.equal((await world.answer({ answer: "reject", message: "no" }, call.request)).outcome, "gone")
  assert.equal(toldOf("call.asked", call.request).length, 1)
})

test("a yes counts when the tool starts a shell, asks its own question, or has run", async () => {
  const world = await opencode()
  world.state = undefined
  const env = (call) => world.hooks["shell.env"]({ sessionID: world.session, callID: call.callID }, { env: {} })
  for (const moves of [env, (call) => call.after(), (call) => world.emit("permission.asked", { id: "per_own", tool: { callID: call.callID } })]) {
    const call = await held(world)
    const answered = world.answer({ answer: "once" }, call.request)
    await call.before
    await moves(call)
    assert.equal((await answered).outcome, "effective")
    told.splice(0)
  }
})

test("a no is thrown in the words of the person, and counts when OpenCode has them", async () => {
  const world = await opencode()
  // A reason that mentions an abort is not an abort, and neither is a part of those words.
  for (const message of ["use trash", "abort that plan", "Tool"]) {
    const call = await held(world, `call_${message}`)
    const answered = world.answer({ answer: "reject", message }, call.request)
    assert.equal(await call.before, message)
    await world.show(call.callID, { status: "running" })
    assert.deepEqual(toldOf("approval.outcome", call.request), [])
    await world.show(call.callID, { status: "error", error: `Error: ${message}` })
    assert.equal((await answered).outcome, "effective")
  }
})

test("whatever is not a yes in so many words refuses the call", async () => {
  const world = await opencode()
  for (const reply of [{ answer: "reject" }, { answer: "reject", message: "" }, { answer: "always" }, {}]) {
    const call = await held(world, `call_${JSON.stringify(reply)}`)
    const answered = world.answer(reply, call.request)
    assert.equal(await call.before, REFUSAL)
    await world.show(call.callID, { status: "error", error: `Error: ${REFUSAL}` })
    assert.equal((await answered).outcome, "effective")
  }
})

test("a tool that shows nothing counts by its state", async () => {
  const world = await opencode()
  assert.deepEqual(await silently(world, await held(world, "call_silent"), { answer: "once" }), ["effective", "goes on"])
  const refused = await held(world, "call_refused")
  world.calls.call_refused = { status: "error", error: "not now" }
  assert.deepEqual(await silently(world, refused, { answer: "reject", message: "not now" }), ["effective", "not now"])
  const dark = await held(world, "call_dark")
  world.state = undefined
  assert.deepEqual(await silently(world, dark, { answer: "once" }), ["unsure", "goes on"])
  assert.deepEqual((await world.answer({ answer: "once" }, dark.request)).outcome, "unsure", "there is no second answer")
})

test("what nobody answers in time is refused, and a late answer is told so", async () => {
  const world = await opencode()
  const call = await held(world, "call_late", { ms: 100 })
  assert.equal(await call.before, REFUSAL)
  const [over] = await eventually("its end", () => toldOf("approval.outcome", call.request)[0] && toldOf("approval.outcome", call.request))
  assert.deepEqual([over.outcome, over.detail], ["gone", LATE])
  assert.equal((await world.answer({ answer: "once" }, call.request)).outcome, "gone")
  await eventually("that it goes on", () => told.find((event) => event.hook_event_name === "call.decided" && event.session_id === world.session))
})

test("a call in a turn that ends is refused, and closed", async () => {
  const world = await opencode()
  const ended = { "session.idle": {}, "session.error": {}, "session.deleted": { info: { id: world.session } } }
  for (const [type, more] of Object.entries(ended)) {
    const call = await held(world, `call_${type}`)
    await world.emit(type, more)
    assert.equal(await call.before, REFUSAL)
    await eventually("its end", () => toldOf("approval.gone", call.request)[0])
    assert.equal((await world.answer({ answer: "once" }, call.request)).outcome, "gone")
  }
  assert.ok(!told.some((event) => event.hook_event_name === "call.decided" && event.session_id === world.session), "nothing goes on")
})

test("an abort in the very moment of an answer is seen", async () => {
  const world = await opencode()
  for (const answer of [{ answer: "once" }, { answer: "reject", message: "abort" }]) {
    const call = await held(world, `call_${answer.answer}`)
    const answered = world.answer(answer, call.request)
    await call.before
    await world.show(call.callID, { status: "error", error: "Tool execution aborted" })
    assert.equal((await answered).outcome, "gone")
    const over = await held(world, `call_over_${answer.answer}`)
    const late = world.answer(answer, over.request)
    await over.before
    await world.emit("session.idle")
    assert.equal((await late).outcome, "gone")
  }
  // It was released before, and its tool still runs.
  const left = await held(world, "call_left")
  const answered = world.answer({ answer: "once" }, left.request)
  await left.before
  await world.show(left.callID, { status: "error", error: "Tool execution aborted" })
  await world.emit("session.idle")
  await world.hooks["shell.env"]({ sessionID: world.session, callID: left.callID }, { env: {} })
  assert.equal((await answered).outcome, "effective")
})

test("an error ends what waited then, and nothing that waits since", async () => {
  const world = await opencode()
  const first = await held(world, "call_before")
  const failed = world.emit("session.error")
  await world.emit("session.idle")
  assert.equal(await first.before, REFUSAL)
  const second = await held(world, "call_since")
  await failed
  assert.equal(second.is, undefined, "it waits")
  assert.deepEqual(await openly(world, second, { answer: "once" }), ["effective", "goes on"])
})

test("two calls are answered each on its own", async () => {
  const world = await opencode()
  const [first, second] = [await held(world, "call_first"), await held(world, "call_second")]
  world.calls.call_second = { status: "error", error: "not this" }
  assert.deepEqual(await openly(world, second, { answer: "reject", message: "not this" }), ["effective", "not this"])
  assert.equal(first.is, undefined)
  assert.deepEqual(await openly(world, first, { answer: "once" }), ["effective", "goes on"])
})

test("a call that two plugins of one process see is asked about once", async () => {
  const world = await opencode()
  const first = await held(world, "call_twice")
  const second = await held(world, "call_twice")
  assert.deepEqual(await openly(world, first, { answer: "once" }), ["effective", "goes on"])
  assert.equal(await second.before, "goes on")
  assert.equal(toldOf("call.asked", first.request).length, 1)
})

test("the next link hears of a held call, and its answer is taken", async () => {
  const world = await opencode()
  const call = await held(world)
  link.destroy()
  await eventually("the question again", () => toldOf("call.asked", call.request)[1])
  assert.deepEqual(await openly(world, call, { answer: "once" }), ["effective", "goes on"])
  // A released call is reported too, so that its link learns the result; but it does not wait.
  const gone = await held(world, "call_let_go")
  const answered = world.answer({ answer: "once" }, gone.request)
  await gone.before
  link.destroy()
  await eventually("the question again", () => toldOf("call.asked", gone.request)[1])
  assert.equal((await answered).outcome, "effective")
  const names = told.filter((event) => event.request === gone.request).map((event) => event.hook_event_name)
  assert.deepEqual(names, ["call.asked", "call.asked", "call.decided", "approval.outcome"])
})

test("where nobody can be told of a call, nobody is waited for", async () => {
  verdicts.set("call_nowhere", { deny: REFUSAL, hold: { ms: LIMIT, why: "" } })
  const session = { get: async () => Promise.reject(new Error("no such session")) }
  const hooks = await Baton({ client: { session }, directory: "/", serverUrl: "http://127.0.0.1:7777/" })
  const before = hooks["tool.execute.before"]({ tool: "bash", sessionID: "ses_nowhere", callID: "call_nowhere" }, { args: {} })
  await assert.rejects(before, { message: REFUSAL })
})
