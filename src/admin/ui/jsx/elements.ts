/** The HTML elements and attributes of @elysiajs/html, which are Kita's. Types only: the plugin itself is never loaded. */
import type {} from "@elysiajs/html";

export type Elements = JSX.IntrinsicElements;
