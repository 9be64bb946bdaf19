/** Before each file: `dragoman` is on the PATH, so that messages name it by that name. */
import { delimiter, join } from "node:path";

process.env.PATH = [join(import.meta.dir, "bin"), process.env.PATH].join(delimiter);
