/** Runs a subject until its compiler has little left to do, so that a window measures the program and not the compiler. */
import { readdirSync, readFileSync } from "node:fs";
import { workIn } from "./statistics";

/** Of a batch's CPU, what compiling may take in the end. */
const share = 0.03;

/** @returns How many batches it took. */
export async function warmUp(pid: number, batch: () => Promise<unknown>, maxBatches: number): Promise<number> {
  for (let done = 1; ; done++) {
    const compiling = compilerCpuOf(pid);
    const total = await workIn(pid, batch);
    if (done === maxBatches || compilerCpuOf(pid) - compiling <= share * total) return done;
  }
}

/** Seconds of CPU of the compiler's threads that live. */
function compilerCpuOf(pid: number): number {
  const folder = `/proc/${pid}/task`;
  const nanoseconds = readdirSync(folder).map((thread) => {
    try {
      const name = readFileSync(`${folder}/${thread}/comm`, "utf8");
      if (!/JIT/.test(name)) return 0;
      return Number(readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      return 0; // it has just ended
    }
  });
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e9;
}
