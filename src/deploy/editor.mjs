import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Starts dragoman on a free port. It ends with this process, whatever becomes of that. */
export async function startDragoman(log = console.error) {
  const tied = ["--stdin-lifetime", "--parent-pid", String(process.pid)];
  const child = spawn("dragoman", ["start", "--json", "--port", "0", ...tied], { windowsHide: true });
  createInterface(child.stderr).on("line", log); // for people: show it where your log is
  const [line] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    once(child, "close").then(([code]) => {
      throw new Error(`dragoman ended with code ${code}; its log says why`);
    }),
  ]);
  const told = JSON.parse(line);
  if (told.event === "failed") throw Object.assign(new Error(told.message), { code: told.code });
  return {
    /** Such as http://127.0.0.1:40321 */
    url: told.url,
    /** Running answers may end first. */
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill();
      await once(child, "exit");
    },
  };
}

const dragoman = await startDragoman();
try {
  const response = await fetch(`${dragoman.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-6-luna", messages: [{ role: "user", content: "Hello! Who are you?" }] }),
  });
  const { choices, error } = await response.json();
  console.log(error?.message ?? choices[0].message.content);
} finally {
  await dragoman.stop();
}
