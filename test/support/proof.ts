/** Whether a test goes to the length that only a nightly run can afford: more rounds of chance. `PROOF=1`. */
export const proof = process.env.PROOF === "1";
