// Elements of the page.

const byId = (id) => document.getElementById(id);

const element = (kind, properties, ...children) => {
  const made = document.createElement(kind);
  const { role, ...others } = properties;
  if (role) made.setAttribute("role", role);
  Object.assign(made, others);
  made.append(...children);
  return made;
};
