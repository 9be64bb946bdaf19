/** Scenario: who is near, and still somebody else: another user of this machine. */
import { expect } from "bun:test";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { run } from "../../support/command";
import { testWith } from "../../support/sandbox";

testWith(
  "users",
  "with --admin-auth=always another user of this machine gets neither the admin API nor the token",
  async () => {
    await using command = run(["start", "--demo", "--json", "--port", "0", "--admin-auth=always"], {
      env: { ADMIN_TOKEN: "t-admin-0123456789" },
    });
    const { url } = await command.ready();
    const asNobody = (path: string, ...more: string[]) => {
      const curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", ...more, url + path];
      return Bun.spawnSync(["setpriv", "--reuid=65534", "--clear-groups", ...curl]).stdout.toString();
    };
    expect(asNobody("/api/admin/meta")).toBe("401");
    expect(asNobody("/api/admin/requests")).toBe("401");
    expect(asNobody("/token")).toBe("403");
    const body = JSON.stringify({ model: exampleModels.flash, messages: [{ role: "user", content: "Hello" }] });
    expect(asNobody("/v1/chat/completions", "-H", "content-type: application/json", "-d", body)).toBe("200");
    expect(asNobody("/api/admin/meta", "-H", "x-admin-token: t-admin-0123456789")).toBe("200");
  },
);
