import type { DecisionChoice } from "./protocol";

/** words are what people read for the answers that a decision offers. */
export const words: Record<DecisionChoice, string> = {
  allowOnce: "Allow Once",
  allowSession: "Allow for Session",
  allowAlways: "Always Allow",
  reject: "Reject",
  happened: "It Took Effect",
  didNotRun: "It Did Not Run",
  runAgain: "Run It Again",
  tellModel: "Let the Model Find Out",
  answer: "Answer",
  cancelled: "Cancelled",
  unavailable: "Unavailable",
};
