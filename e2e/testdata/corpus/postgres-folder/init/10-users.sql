create role app login;
