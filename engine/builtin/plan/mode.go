package plan

const planOnly = `# Plan mode
This session plans. Only tools that read, search or think can be called; everything else is denied. Find out what you need,
write the plan with update_plan, and then present it. Do not try to carry it out: a person ends plan mode first.`
