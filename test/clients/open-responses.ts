/**
 * Open Responses' own compliance tests against the demo: `bun test/clients/open-responses.ts <clone of openresponses/openresponses>`.
 * The models are those that an upstream of another dialect answers, so that each reply is dragoman's own; what Copilot's Responses API
 * says passes through as it is. Needs npm.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { startProxy } from "../support/proxy";

/** Which models, and the tests that each does not pass. */
const models: Record<string, string[]> = {
  // No server behind it keeps replies, so that a conversation is sent whole.
  "claude-sonnet-4.6": ["previous-response-id"],
  // Copilot's chat completions read no files.
  "gemini-3.1-pro-preview": ["previous-response-id", "file-input"],
};

const report = z.object({
  results: z.array(
    z.object({
      id: z.string(),
      status: z.enum(["passed", "failed", "skipped"]),
      errors: z.array(z.string()).optional(),
    }),
  ),
});

const [clone] = process.argv.slice(2);
if (!clone) throw new Error("Which folder has the clone?");
// Of its packages only the one that reads answers: the rest makes its web site.
const folder = mkdtempSync(join(tmpdir(), "open-responses-"));
for (const part of ["bin", "src/lib", "src/generated"])
  cpSync(join(clone, part), join(folder, part), { recursive: true });
writeFileSync(join(folder, "package.json"), JSON.stringify({ dependencies: { zod: "3.25.76" } }));
const install = Bun.spawnSync([process.execPath, "install", "--silent"], { cwd: folder });
if (!install.success) throw new Error(install.stderr.toString());

let isAsExpected = true;
const proxy = await startProxy();
try {
  for (const [model, failing] of Object.entries(models)) {
    const options = ["--base-url", `${proxy.url}/v1`, "--api-key", "any", "--model", model, "--json"];
    const run = Bun.spawn([process.execPath, "bin/compliance-test.ts", ...options], { cwd: folder, stderr: "inherit" });
    const { results } = report.parse(await new Response(run.stdout).json());
    for (const { id, status, errors = [] } of results) {
      const isExpected = status === "skipped" || (status === "failed") === failing.includes(id);
      isAsExpected &&= isExpected;
      console.log(
        `${isExpected ? "as expected" : "NOT AS EXPECTED"}: ${model}: ${id}: ${[status, ...errors].join(", ")}`,
      );
    }
    isAsExpected &&= results.some(({ status }) => status === "passed");
  }
} finally {
  await proxy[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(isAsExpected ? 0 : 1);
