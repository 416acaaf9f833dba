// Package proof says who authorised what runs, in a file that anybody can check with
// nothing but the keys he trusts. It is made by the daemon and judged without it.
//
// Nothing that a proof says of itself is believed. Objects of Git are named by their own
// bytes, the chain of commits is judged by the rules of package gitsync with the keys of
// whoever checks, and the version is computed anew from the files of the commit. What
// remains is the host's word (that a container with these labels runs, and when), and the
// answer says so.
//
//	proof       what a proof holds, and its bounds
//	pack        objects of Git, and lines of the journal, made small
//	read        a file, read strictly
//	values      what of the host a version depends on
//	replay      encrypted files, as a plan says them, without a key
//	version     a version, computed from the files of a commit
//	least       as few of the host's values as give the same version
//	journal     the chain of the journal's lines
//	fault       what is wrong with a proof, by name
//	check       the judgement
//	container   what the container says, held against the commit
package proof
