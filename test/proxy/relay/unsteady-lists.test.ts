/** Scenario: lists of one account differ from call to call: a model in use does not vanish, and one that is gone does not stay. */
import { testScenes } from "../../support/scenes";

testScenes("lists");
