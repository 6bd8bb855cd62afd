#!/usr/bin/env node
// Starts the program of this system's package. `baton setup` writes the program's own path into the agents' files,
// so hooks never run this file.
"use strict";
const { spawn } = require("node:child_process");
const path = require("node:path");

const programs = @PROGRAMS@;
const name = programs[`${process.platform}-${process.arch}`];

function program() {
  if (!name) throw new Error(`there is no package for ${process.platform} on ${process.arch}`);
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", "baton");
  } catch {
    throw new Error(`the package ${name} is missing; install again, and don't leave out optional packages`);
  }
}

try {
  const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
  // Ctrl-C reaches the program by the terminal; the others are passed on.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(error));
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
} catch (error) {
  fail(error);
}

function fail(error) {
  console.error(`error: ${error.message}`);
  process.exit(1);
}
