"use strict";
// The explorer's page asks its server by `fetch`; here that is the worker of the page around it.
window.fetch = async (address, { body }) => {
  const [status, text] = await parent.askExplorer(address.replace("api/", ""), body);
  return new Response(text, { status });
};
