package plan

// planOnly is the part of the prompt in plan mode.
const planOnly = `# Plan mode
This session only plans. You can call only tools that read, search or think; all others are denied. Gather the facts that you need,
write the plan with update_plan, and then present it. Do not try to carry it out: the user has to end plan mode first.`
