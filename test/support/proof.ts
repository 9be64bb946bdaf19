/** Whether a test goes to the length that only a nightly run can afford: more rounds of chance, and waits by real clocks. `PROOF=1`. */
export const proof = process.env.PROOF === "1";
