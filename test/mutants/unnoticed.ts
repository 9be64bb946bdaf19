/** Changes that no test has to notice, each with the reason. */
export const unnoticed: { file: string; change: string; reason: string }[] = [];
