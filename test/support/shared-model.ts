/** A chat model that both lists of the demo have: that of yearly plans, which `startProxy` serves, and that of `start --demo`. */
export const sharedModel = "claude-haiku-4.5";
