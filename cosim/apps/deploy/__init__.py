"""A rig as code for other machines: object code, WebAssembly, a web page, a GPU kernel."""
