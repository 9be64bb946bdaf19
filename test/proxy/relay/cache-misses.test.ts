/** Scenario: why a turn's prompt was not read from the upstream's cache, and which keys and marks make it be read. */
import { testScenes } from "../../support/scenes";

testScenes("cache");
