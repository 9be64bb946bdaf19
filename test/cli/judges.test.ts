/** Rows: what doctor makes of what its checks have measured: the judges are plain functions, and start nothing. */
import { expect, test } from "bun:test";
import { judgeDisk } from "../../src/cli/checks/files";
import { judgeClock } from "../../src/cli/checks/network";

test("doctor says that there is little room on the disk before there is none", () => {
  const free = (mebibytes: number) => judgeDisk(mebibytes * 1024 * 1024);
  expect(free(5000)).toMatchObject({ state: "ok", message: "4.88 GiB are free on the disk of the data folder." });
  expect(free(150)).toMatchObject({ state: "warn", message: expect.stringContaining("150 MiB") });
  expect(free(1)).toMatchObject({ state: "fail", message: expect.stringContaining("1 MiB") });
});

test("doctor judges the clock by the middle one of the hosts' times", () => {
  expect(judgeClock([2000, -1500, 900]).state).toBe("ok");
  expect(judgeClock([90_000, 91_000, 400_000])).toMatchObject({
    state: "warn",
    message: "This machine's clock is 91 seconds ahead.",
  });
  expect(judgeClock([-3_600_000])).toMatchObject({
    state: "fail",
    message: expect.stringContaining("60 minutes behind"),
  });
});
