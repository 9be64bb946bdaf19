/** HTML's elements and their attributes as @elysiajs/html has them from Kita: types only, so its plugin is never loaded. */
import type {} from "@elysiajs/html";

export type Elements = JSX.IntrinsicElements;
