// SPDX-License-Identifier: Apache-2.0
// The search runs in a worker, which browsers refuse to a page that was opened from a file: there an inner frame runs it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.inner.document.createElement("script");
      script.src = url;
      this.loaded = new Promise((loaded, failed) => {
        script.onload = loaded;
        script.onerror = () => failed(new Error(`${url} does not load`));
      });
      this.inner.document.body.append(script);
    }

    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
